package cli

import (
	"fmt"
	"io"
	"strings"
)

// completeBash needs nothing of the package bash-completion, but uses it where it is
// there, to complete the command that is to be run.
func completeBash(w io.Writer, commands []completed) {
	fmt.Fprint(w, `# bash completion for sandboxd: sandboxd completion bash

# What a flag's value is: nothing for a switch.
_sandboxd_value() {
	case "$1 $2" in
`)
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
		for _, f := range c.flags {
			kind, words := f.takes()
			if kind == noValue {
				continue
			}
			what := map[operand]string{anyValue: "any", fileValue: "file", dirValue: "dir", wordsValue: "words " + strings.Join(words, " ")}[kind]
			fmt.Fprintf(w, "\t\"%s --%s\") echo %s ;;\n", c.name, f.name, what)
		}
	}
	fmt.Fprint(w, `	esac
}

_sandboxd_flags() {
	case $1 in
`)
	for _, c := range commands {
		if len(c.flags) == 0 {
			continue
		}
		var flags []string
		for _, f := range c.flags {
			flags = append(flags, "--"+f.name)
		}
		fmt.Fprintf(w, "\t%s) echo %s ;;\n", c.name, strings.Join(flags, " "))
	}
	fmt.Fprint(w, `	esac
}

_sandboxd_operands() {
	case $1 in
`)
	for _, c := range commands {
		switch c.operand {
		case wordsValue:
			fmt.Fprintf(w, "\t%s) echo words %s ;;\n", c.name, strings.Join(c.words, " "))
		case fileValue:
			fmt.Fprintf(w, "\t%s) echo file ;;\n", c.name)
		}
	}
	fmt.Fprintf(w, bashRest, strings.Join(names, " "))
}

const bashRest = `	esac
}

_sandboxd_propose() {
	local cur=$1 kind=$2
	shift 2
	case $kind in
	words) mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur") ;;
	file) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames 2>/dev/null ;;
	dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); compopt -o filenames 2>/dev/null ;;
	esac
}

_sandboxd() {
	local cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]} i word flag='' start=''
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_sandboxd_propose "$cur" words %s
		return
	fi
	# Flags with their values, up to the word that is completed; "=" is a word of its own.
	for ((i = 2; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ -n $flag ]]; then
			[[ $word == "=" ]] || flag=''
		elif [[ $word == -- ]]; then
			start=$((i + 1))
			break
		elif [[ $word == -* ]]; then
			[[ -z $(_sandboxd_value "$cmd" "$word") ]] || flag=$word
		elif [[ $cmd == run ]]; then
			start=$i
			break
		fi
	done
	if [[ -n $flag ]]; then
		[[ $cur != "=" ]] || cur=''
		# shellcheck disable=SC2046 # a list of words
		_sandboxd_propose "$cur" $(_sandboxd_value "$cmd" "$flag")
	elif [[ -z $start && $cur == -* ]]; then
		_sandboxd_propose "$cur" words "$(_sandboxd_flags "$cmd")"
	elif [[ $cmd == run && ${start:-$COMP_CWORD} == "$COMP_CWORD" ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
	elif [[ $cmd == run ]]; then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$start"
		else
			_sandboxd_propose "$cur" file
		fi
	else
		# shellcheck disable=SC2046 # a list of words
		_sandboxd_propose "$cur" $(_sandboxd_operands "$cmd")
	fi
}

complete -F _sandboxd sandboxd
`
