package cli

// command is one entry of the command table, which the help, the manual and the
// completions are made from.
type command struct {
	name, args, help string
	about            string // paragraphs of the manual, separated by blank lines
	use              use    // whose flags of the flag table it takes
	usage            string // instead: its flags as a text, see parseUsage
	hidden           bool   // of no use to a person: not completed
	run              func(args []string, s System) int
}

func commands() []command {
	return []command{
		{name: "run", args: "[flags] [--] CMD [ARG...]", help: "run a command in the jail", use: forRun, about: aboutRun, run: runCommand},
		{name: "explain", args: "[flags] [PATH...]", help: "what a policy allows, and why not more; runs nothing", use: forExplain, about: aboutExplain, run: explainCommand},
		{name: "policy", args: "[workspace|fence] [flags]", help: "print a ready policy", use: forPolicy, about: aboutPolicy, run: policyCommand},
		{name: "doctor", args: "[flags]", help: "what this host lacks, why, and what to do about it", use: forDoctor, about: aboutDoctor, run: doctorCommand},
		{name: "self-test", args: "[flags]", help: "what this machine really enforces", usage: selfTestUsage, about: aboutSelfTest, run: selfTest},
		{name: "completion", args: "bash|zsh|fish", help: "print a script that completes arguments", about: aboutCompletion, run: completion},
		{name: "man", help: "print the manual page (sandboxd man | man -l -)", run: manual},
		{name: "help", args: "[COMMAND]", help: "print this, or a command's flags", run: help},
		{name: "--self-test", help: "self-test by another name", hidden: true, run: selfTest},
		{name: "--publish-git-identity", args: "POLICY WORKSPACE ENTRIES", help: "for brokers: write a git identity", hidden: true, run: publishIdentity},
		{name: "--version", help: "print versions", run: version},
		{name: "--help", help: "the same as help", run: help},
		{name: "-h", help: "the same as help", hidden: true, run: help},
	}
}

// find gives the entry of that name.
func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// The paragraphs of the manual.
const (
	aboutRun = `Starts a helper, has it build the jail, runs CMD in it and passes on its input, output and exit code byte for byte. The command gets pipes and never the terminal. Flags end at CMD or at "--".

Refused are "/", a system directory and the home directory as a workspace that nobody named, and a host without a jail.

Ctrl-C and SIGTERM ask the command to end: TERM, two seconds later KILL. A second one kills the helper, whose death takes the jail. Ctrl-Z stops the terminal's job and the command with it until it is continued. Whoever reads the output may go away: the command is then stopped, and the exit code is 141.

With --json standard output gets one JSON object a line. Its "event" is "start" (once the helper is there), "output" ("stream" and "text", or "base64" where the bytes are no UTF-8), "notice" (something that a person should know), and at last either "exit" (the command ended: "code", "signal", "timed_out", "cancelled", "degraded", "enforcement", ...) or "error" ("message", and "reason" where the helper gave a code); in both "exit" is the exit code of run itself.`

	aboutExplain = `Answers "why can't it write there?" for each PATH: what the command may do, which entry of which list of the policy decides it, and the smallest change that would allow more, tried out on the plan before it is said. Without a PATH it shows the whole view as a tree, and which environment variables are left out. It runs neither a command nor bubblewrap; only git is asked for its configuration, as the preset guards what that names. What this host lacks is doctor's to find out.

With --argv it prints the arguments that bubblewrap is given, or on macOS the Seatbelt profile.

Exit code: 0; 2 wrong arguments; 125 a policy that cannot be read or that this host cannot honour.`

	aboutPolicy = `Prints the policy that the preset and the flags make, for a broker's descriptor 3 or for --policy. With --policy FILE it checks that file and prints it whole, which also turns JSON into msgpack.`

	aboutDoctor = `Looks at each layer of the jail on this host: whether it is there, why not, and what would provide it. It tries bubblewrap out, as a helper does, and runs the smallest command in the jail. Exit code: 0 a command would be jailed here, though layers may be missing; 1 it would not; 2 wrong arguments. What is enforced in fact, self-test proves.`

	aboutSelfTest = `Tries what the jail must deny, on this machine and through the real jail. Exit code: 0 no probe failed; 1 one failed, or a required layer is missing; 2 wrong arguments; 3 nothing could be run or proved.`

	aboutCompletion = `Prints a completion script: for bash put it into ~/.local/share/bash-completion/completions/sandboxd, for zsh into a directory of $fpath as _sandboxd, for fish into ~/.config/fish/completions/sandboxd.fish.`
)
