package cli

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"sandboxd/internal/gitidentity"
)

// gitIdentity reads the user's name and email from the user's own git configuration.
// --global and the root as directory keep a repository's configuration, which a
// command of an earlier run may have written, out of it. git is the program; without
// it or without an identity it is empty: git itself then says what is missing.
func gitIdentity(ctx context.Context, git string) map[string]string {
	if git == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, "config", "--global", "-z", "--get-regexp", `^user\.(name|email)$`)
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return parseIdentity(string(out))
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
