package gitidentity

import (
	"fmt"
	"strings"
)

// Render gives the file's text. useConfigOnly keeps git from making an identity up
// where one is not given. The error is a text over MaxOutput or over the policy's
// ceiling on a file's size.
func (r Request) Render() ([]byte, error) {
	text := "[user]\n\tuseConfigOnly = true\n"
	if r.Name != nil {
		text += "\tname = " + quote(*r.Name) + "\n"
	}
	if r.Email != nil {
		text += "\temail = " + quote(*r.Email) + "\n"
	}
	if len(text) > MaxOutput {
		return nil, fmt.Errorf("cannot publish the identity: its file is larger than %d bytes", MaxOutput)
	}
	if most := r.Policy.Limits.FsizeBytes; most > 0 && uint64(len(text)) > most {
		return nil, fmt.Errorf("cannot publish the identity: its file is larger than the policy's fsize_bytes, %d", most)
	}
	return []byte(text), nil
}

// quote writes a value as git-config(1), "Syntax", has it: quotes keep outer blanks,
// comment characters and carriage returns.
func quote(value string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value)
	if strings.ContainsAny(value, ";#\r") || strings.HasPrefix(value, " ") || strings.HasSuffix(value, " ") {
		return `"` + escaped + `"`
	}
	return escaped
}
