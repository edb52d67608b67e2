package cli

import (
	"fmt"
	"io"
	"strings"
)

func completeZsh(w io.Writer, commands []completed) {
	fmt.Fprint(w, `#compdef sandboxd
# zsh completion for sandboxd: sandboxd completion zsh

_sandboxd() {
	local curcontext=$curcontext state line
	typeset -A opt_args
	_arguments -C '1: :->command' '*:: :->rest'
	case $state in
	command)
		local -a commands=(
`)
	for _, c := range commands {
		fmt.Fprintf(w, "\t\t\t%s\n", zshQuoted(strings.ReplaceAll(c.name, ":", `\:`)+":"+c.help))
	}
	fmt.Fprint(w, `		)
		_describe -t commands command commands
		;;
	rest)
		case $words[1] in
`)
	for _, c := range commands {
		if len(c.flags) == 0 && c.operand == noValue {
			continue
		}
		fmt.Fprintf(w, "\t\t%s)\n\t\t\t_arguments -S", c.name)
		for _, f := range c.flags {
			fmt.Fprintf(w, " \\\n\t\t\t\t%s", zshQuoted(zshFlag(f)))
		}
		switch c.operand {
		case commandValue:
			fmt.Fprint(w, " \\\n\t\t\t\t'(-)1: :_command_names -e' '*:: :_normal'")
		case fileValue:
			fmt.Fprint(w, " \\\n\t\t\t\t'*:path:_files'")
		case wordsValue:
			fmt.Fprintf(w, " \\\n\t\t\t\t%s", zshQuoted("1: :("+strings.Join(c.words, " ")+")"))
		}
		fmt.Fprint(w, "\n\t\t\t;;\n")
	}
	fmt.Fprint(w, `		esac
		;;
	esac
}

if [[ $funcstack[1] == _sandboxd ]]; then
	_sandboxd "$@"
else
	compdef _sandboxd sandboxd
fi
`)
}

// zshFlag is one specification of _arguments.
func zshFlag(f flag) string {
	spec := "--" + f.name
	if f.repeatable() {
		spec = "*" + spec
	}
	kind, words := f.takes()
	if kind != noValue {
		spec += "="
	}
	spec += "[" + strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(f.help) + "]"
	switch kind {
	case anyValue:
		spec += ":" + strings.NewReplacer("[", "", "]", "", ":", "").Replace(f.arg) + ": "
	case wordsValue:
		spec += ": :(" + strings.Join(words, " ") + ")"
	case fileValue:
		spec += ":path:_files"
	case dirValue:
		spec += ":directory:_files -/"
	}
	return spec
}

func zshQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
