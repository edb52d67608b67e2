package cli

import (
	"fmt"
	"io"
	"strings"
)

func completeFish(w io.Writer, commands []completed) {
	fmt.Fprintf(w, `# fish completion for sandboxd: sandboxd completion fish

# The command is the first word, and what run is to run comes behind its flags.
function __sandboxd_is
	set -l words (commandline -opc)
	test (count $words) -gt 1; and test $words[2] = $argv[1]
end

function __sandboxd_none
	test (count (commandline -opc)) -eq 1
end

# The command line that run is to run, without what is in front of it.
function __sandboxd_command
	set -l words (commandline -opc)
	set -e words[1..2]
	while set -q words[1]
		switch $words[1]
			case --
				set -e words[1]
				break
			case '--*=*'
				set -e words[1]
			case %s
				set -q words[2]; or return
				set -e words[1..2]
			case '-*'
				set -e words[1]
			case '*'
				break
		end
	end
	not set -q words[1]; and string match -q -- '-*' (commandline -ct); and return
	complete --do-complete=(string join ' ' -- (string escape -- $words) (commandline -ct))
end

complete -c sandboxd -f
`, strings.Join(withValues(commands[0]), " "))
	for _, c := range commands {
		is := fishQuoted("__sandboxd_is " + c.name)
		fmt.Fprintf(w, "complete -c sandboxd -n __sandboxd_none -a %s -d %s\n", fishQuoted(c.name), fishQuoted(c.help))
		for _, f := range c.flags {
			line := "complete -c sandboxd -n " + is + " -l " + f.name
			switch kind, words := f.takes(); kind {
			case anyValue:
				line += " -x"
			case wordsValue:
				line += " -x -a " + fishQuoted(strings.Join(words, " "))
			case fileValue:
				line += " -r -F"
			case dirValue:
				line += " -x -a '(__fish_complete_directories)'"
			}
			fmt.Fprintf(w, "%s -d %s\n", line, fishQuoted(f.help))
		}
		switch c.operand {
		case commandValue:
			fmt.Fprintf(w, "complete -c sandboxd -n %s -x -a '(__sandboxd_command)'\n", is)
		case fileValue:
			fmt.Fprintf(w, "complete -c sandboxd -n %s -F\n", is)
		case wordsValue:
			fmt.Fprintf(w, "complete -c sandboxd -n %s -a %s\n", is, fishQuoted(strings.Join(c.words, " ")))
		}
	}
}

// withValues are the flags of a command that take a value.
func withValues(c completed) (out []string) {
	for _, f := range c.flags {
		if f.arg != "" {
			out = append(out, "--"+f.name)
		}
	}
	return out
}

func fishQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
