package procfs

import "strings"

// Unescape undoes what the kernel does to a path in mountinfo (proc_pid_mountinfo(5)):
// a blank, tab, newline, backslash and '#' stand as a backslash and three octal digits.
// False means that no kernel wrote this.
func Unescape(s string) (string, bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i+3 >= len(s) {
			return "", false
		}
		n := 0
		for _, c := range []byte(s[i+1 : i+4]) {
			if c < '0' || c > '7' {
				return "", false
			}
			n = n*8 + int(c-'0')
		}
		if n > 0xff {
			return "", false
		}
		out = append(out, byte(n))
		i += 3
	}
	return string(out), true
}
