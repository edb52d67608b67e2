package eval

import (
	"fmt"
	"strings"
)

// node is an atom, a string or a list of the profile's text.
type node struct {
	list   []node
	text   string
	isList bool
	quoted bool
}

// parse reads all expressions of a text.
func parse(text string) ([]node, error) {
	p := parser{text: text}
	var out []node
	for {
		p.space()
		if p.at == len(p.text) {
			return out, nil
		}
		n, err := p.node()
		if err != nil {
			return nil, fmt.Errorf("at byte %d: %w", p.at, err)
		}
		out = append(out, n)
	}
}

type parser struct {
	text string
	at   int
}

// space passes white space and comments.
func (p *parser) space() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			p.at++
		case c == ';':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *parser) node() (node, error) {
	switch rest := p.text[p.at:]; {
	case rest[0] == '(':
		return p.listNode()
	case rest[0] == ')':
		return node{}, fmt.Errorf("a parenthesis too many")
	case rest[0] == '"':
		return p.str(true)
	case strings.HasPrefix(rest, `#"`):
		p.at++
		return p.str(false)
	}
	end := strings.IndexAny(p.text[p.at:], " \n\t\r();\"")
	if end < 0 {
		end = len(p.text) - p.at
	}
	n := node{text: p.text[p.at : p.at+end]}
	p.at += end
	return n, nil
}

func (p *parser) listNode() (node, error) {
	p.at++
	n := node{isList: true}
	for {
		p.space()
		if p.at == len(p.text) {
			return n, fmt.Errorf("a parenthesis is missing")
		}
		if p.text[p.at] == ')' {
			p.at++
			return n, nil
		}
		sub, err := p.node()
		if err != nil {
			return n, err
		}
		n.list = append(n.list, sub)
	}
}

// str reads a string; in the form #"..." a backslash is itself.
func (p *parser) str(escapes bool) (node, error) {
	var s strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return node{text: s.String(), quoted: true}, nil
		case c == '\\' && escapes:
			p.at++
			if p.at < len(p.text) {
				s.WriteByte(p.text[p.at])
			}
		default:
			s.WriteByte(c)
		}
	}
	return node{}, fmt.Errorf("a string has no end")
}
