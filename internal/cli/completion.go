package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// completion is `sandboxd completion SHELL`.
func completion(args []string, s System) int {
	const usage = "type `sandboxd completion bash|zsh|fish`"
	if len(args) != 1 {
		return complain(s, exitUsage, errors.New("which shell? "+usage))
	}
	var print func(w io.Writer, commands []completed)
	switch args[0] {
	case "bash":
		print = completeBash
	case "zsh":
		print = completeZsh
	case "fish":
		print = completeFish
	case "--help", "-h":
		return reject(s, "completion", errHelp)
	default:
		return complain(s, exitUsage, fmt.Errorf("no completion for %q; %s", args[0], usage))
	}
	print(s.Stdout, forCompletion())
	return 0
}

// completed is a command as the completions see it.
type completed struct {
	name, help string
	flags      []flag
	words      []string // that it takes besides flags
	operand    operand
}

// operand is what a value or an argument is.
type operand uint8

const (
	noValue    operand = iota
	anyValue           // nothing can be proposed
	wordsValue         // one of a few words
	fileValue
	dirValue
	commandValue // a command and its own arguments
)

func forCompletion() []completed {
	var out []completed
	for _, c := range people() {
		one := completed{name: c.name, help: c.help, flags: c.allFlags()}
		switch c.name {
		case "run":
			one.operand = commandValue
		case "explain":
			one.operand = fileValue
		case "policy":
			one.operand, one.words = wordsValue, []string{presetWorkspace, presetFence}
		case "completion":
			one.operand, one.words = wordsValue, []string{"bash", "zsh", "fish"}
		case "help":
			one.operand, one.words = wordsValue, []string{"server"}
			for _, other := range people() {
				if !strings.HasPrefix(other.name, "-") {
					one.words = append(one.words, other.name)
				}
			}
		}
		out = append(out, one)
	}
	return out
}

// takes says what the value of a flag is, by the text of its argument.
func (f flag) takes() (operand, []string) {
	switch {
	case f.arg == "":
		return noValue, nil
	case f.arg == "tmpfs|PATH" || strings.HasPrefix(f.arg, "PATH") || f.arg == "FILE":
		return fileValue, nil
	case f.arg == "DIR":
		return dirValue, nil
	case strings.ToLower(f.arg) == f.arg && strings.Contains(f.arg, "|"):
		return wordsValue, strings.Split(f.arg, "|")
	}
	return anyValue, nil
}

// repeatable says whether a flag may be there more than once.
func (f flag) repeatable() bool { return strings.Contains(f.help, "(repeatable)") }
