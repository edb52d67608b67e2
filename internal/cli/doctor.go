package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"sandboxd/internal/doctor"
	"sandboxd/internal/host"
	"sandboxd/internal/host/probe"
	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// doctorCommand is `sandboxd doctor`.
func doctorCommand(args []string, s System) int {
	p := parser{command: "doctor", use: forDoctor, o: defaults()}
	rest, err := p.anywhere(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown argument %q; `sandboxd help doctor` lists the flags", rest[0])
	}
	if err != nil {
		return reject(s, "doctor", err)
	}
	for _, path := range []*string{&p.o.bwrap, &p.o.cgroupBase} {
		if *path != "" {
			cwd, err := workingDir(s)
			if err != nil {
				return complain(s, exitFailed, err)
			}
			*path = absolute(cwd, *path)
		}
	}
	progress(s, "trying bubblewrap ...")
	f, err := examine(p.o, s)
	if err == nil && f.Host.OS == "linux" && f.Host.Bwrap.State == host.Works {
		progress(s, "running the smallest command ...")
		f.Command, f.Skips = smallest(p.o, s)
	}
	progress(s, "")
	if err != nil {
		return complain(s, exitFailed, err)
	}
	found := doctor.Judge(f)
	if p.o.json {
		err = printJSON(s.Stdout, diagnosis{Jailed: doctor.Jailed(found), OS: runtime.GOOS, Arch: runtime.GOARCH, Release: f.Release, Distro: f.Distro.Name, Layers: found})
	} else {
		printDiagnosis(newScreen(s), f, found)
	}
	if err != nil {
		return complain(s, exitFailed, err)
	}
	if !doctor.Jailed(found) {
		return exitNoJail
	}
	return 0
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	Jailed  bool             `json:"jailed"` // a command would be
	OS      string           `json:"os"`
	Arch    string           `json:"arch"`
	Release string           `json:"release"` // of the kernel
	Distro  string           `json:"distro,omitempty"`
	Layers  []doctor.Finding `json:"layers"`
}

// examine gathers the facts, as a helper does at its start.
func examine(o options, s System) (doctor.Facts, error) {
	facts, err := probe.Facts(context.Background(), probe.Options{Bwrap: o.bwrap})
	if err != nil {
		return doctor.Facts{}, err
	}
	f := doctor.Facts{Host: facts, Distro: readDistro()}
	surroundings(&f, o, s)
	return f, nil
}

// smallestBound is how long the smallest command may take, the start of its helper
// included.
const smallestBound = 60 * time.Second

// smallest runs the smallest command in the jail, as run would run any: a bubblewrap that
// passes its trial need not make a jail that holds, nor the kernel allow all that one
// takes. It gives why that failed, and what its report names as not in force.
func smallest(o options, s System) (failure string, skips map[string]string) {
	path, err := s.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return fmt.Sprintf("cannot find this program's own file: %v", err), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), smallestBound)
	defer cancel()
	policy := protocol.Policy{
		ReadableRoots: []string{path}, // this program is one that is there
		Network:       protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs,
	}
	var args []string
	if o.bwrap != "" {
		args = append(args, "--bwrap", o.bwrap)
	}
	h, err := broker.Start(ctx, broker.Options{Path: path, Args: args, Policy: &policy, Peer: "sandboxd-doctor"})
	if err != nil {
		return err.Error(), nil
	}
	defer h.Close()
	res, err := h.Exec(ctx, broker.Command{Argv: []string{path, "--version"}, Cwd: "/", Policy: &policy})
	if err == nil && res.Code != 0 {
		err = fmt.Errorf("it ended with exit code %d", res.Code)
	}
	var frame *broker.Error
	switch {
	case errors.As(err, &frame) && (frame.Code != protocol.CodeSpawnFailed || strings.HasPrefix(frame.Msg, "exec: ")):
		return "", nil // it is this file that cannot be shown or executed there, which says nothing about the jail
	case errors.As(err, &frame):
		return frame.Msg, nil
	case err != nil:
		return err.Error(), nil
	}
	skips = map[string]string{}
	for _, entry := range res.Enforcement {
		if tag, skip := protocol.Layer(entry); skip {
			skips[tag] = strings.TrimPrefix(entry, "skip:"+tag+": ")
		}
	}
	return "", skips
}

// readDistro reads os-release(5).
func readDistro() doctor.Distro {
	text := readSetting("/etc/os-release")
	if text == "" {
		text = readSetting("/usr/lib/os-release")
	}
	return parseDistro(text)
}

func parseDistro(text string) (d doctor.Distro) {
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch name {
		case "ID":
			d.ID = value
		case "ID_LIKE":
			d.Like = strings.Fields(value)
		case "PRETTY_NAME":
			d.Name = value
		}
	}
	return d
}

func readSetting(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// progress shows what takes its time, on a terminal only; "" takes it away.
func progress(s System, what string) {
	if f, ok := s.Stderr.(*os.File); ok && windowWidth(f) >= 0 {
		fmt.Fprintf(f, "\r\x1b[K%s", what)
	}
}

func printDiagnosis(out screen, f doctor.Facts, found []doctor.Finding) {
	system := strings.TrimSpace(f.Host.OS + " " + f.Release)
	for _, more := range []string{f.Distro.Name, f.Container} {
		if more != "" {
			system += ", " + more
		}
	}
	if f.Container != "" {
		system += " container"
	}
	out.line("", 0, 0, "sandboxd doctor on "+system)
	fmt.Fprintln(out.w)
	missing := 0
	for _, one := range found {
		colour := map[doctor.State]string{doctor.OK: good, doctor.Partial: middle, doctor.Unsure: middle, doctor.Missing: bad}[one.State]
		if one.State != doctor.OK {
			missing++
		}
		const column = 21
		head := fmt.Sprintf("%s%*s %-10s ", out.paint(colour, string(one.State)), 8-len(one.State), "", one.Layer)
		out.line(head, column, column, one.Text)
		if one.Remedy != "" {
			fmt.Fprintln(out.w)
			out.text(4, one.Remedy)
			fmt.Fprintln(out.w)
		}
	}
	if last := found[len(found)-1]; last.Remedy == "" {
		fmt.Fprintln(out.w)
	}
	const jailed, not = "RESULT: commands are jailed here; ", "RESULT: commands cannot be jailed here; "
	switch {
	case !doctor.Jailed(found):
		out.line(out.paint(bad, not), len(not), 0, "`sandboxd run` refuses")
	case missing > 0:
		out.line(out.paint(good, jailed), len(jailed), 0, "what is not ok above is named in each report. `sandboxd self-test` proves the rest")
	default:
		out.line(out.paint(good, jailed), len(jailed), 0, "`sandboxd self-test` proves it")
	}
}
