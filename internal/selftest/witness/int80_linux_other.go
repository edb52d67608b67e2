//go:build linux && !amd64

package witness

func int80() error { return errLacks }
