package cli

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"strings"
	"time"

	"sandboxd/internal/gitidentity"
)

// gitIdentity reads the name and email that git would use in the workspace: the user's
// own, with what the user's configuration includes for this place, and over them the
// repository's, own. A command of an earlier run may have written those: of them only
// these two values are read, and no includes. git is the program; without it or
// without an identity the result is empty: git itself then says what is missing.
func gitIdentity(ctx context.Context, git, workspace string, own []string) map[string]string {
	id := map[string]string{}
	read := func(dir string, flags ...string) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, git, append(append([]string{"config"}, flags...), "-z", "--get-regexp", `^user\.(name|email)$`)...)
		cmd.Dir = dir
		if out, err := cmd.Output(); err == nil {
			maps.Copy(id, parseIdentity(string(out)))
		}
	}
	if git == "" {
		return nil
	}
	read(workspace, "--global", "--includes")
	for _, file := range own {
		read("/", "--file", file, "--no-includes")
	}
	return id
}

// parseIdentity reads "KEY\nVALUE\0..."; the last value of a key wins, as in git.
func parseIdentity(out string) map[string]string {
	id := map[string]string{}
	for entry := range strings.SplitSeq(out, "\x00") {
		key, value, _ := strings.Cut(entry, "\n")
		name, ok := map[string]string{"user.name": "NAME", "user.email": "EMAIL"}[key]
		if ok && value != "" {
			id["GIT_AUTHOR_"+name], id["GIT_COMMITTER_"+name] = value, value
		}
	}
	return id
}

// publishIdentity is `sandboxd --publish-git-identity`.
func publishIdentity(args []string, s System) int {
	r, err := gitidentity.Parse(args, s.Stdin)
	if errors.Is(err, gitidentity.ErrUsage) {
		return complain(s, exitUsage, err)
	}
	if err == nil {
		err = gitidentity.Publish(r)
	}
	if err != nil {
		return complain(s, exitFailed, err)
	}
	return 0
}
