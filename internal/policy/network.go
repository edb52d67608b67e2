package policy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"sandboxd/protocol"
)

// NetworkKeys judges which keys beside "mode" a network map has: exactly those of
// its mode. The result is nil or an error of type *Error.
func NetworkKeys(mode protocol.NetMode, allow, proxy bool) error {
	want := false
	switch mode {
	case protocol.NetOff, protocol.NetFull:
	case protocol.NetProxy:
		want = true
	default:
		return fail("network.mode", `found %s, expected "off", "full" or "proxy"`, quote(string(mode)))
	}
	for _, k := range []struct {
		name string
		has  bool
	}{{"allow", allow}, {"proxy", proxy}} {
		if k.has && !want {
			return fail("network."+k.name, `found this key beside mode %q, expected it with mode "proxy" only; remove it`, mode)
		}
		if !k.has && want {
			return fail("network."+k.name, `missing key, expected with mode "proxy"`)
		}
	}
	return nil
}

func checkNetwork(p protocol.Policy) error {
	n := p.Network
	// A value cannot tell an absent list from an empty one, which mode proxy allows.
	proxy := n.Mode == protocol.NetProxy
	if err := NetworkKeys(n.Mode, proxy || len(n.Allow) > 0, proxy || n.Proxy != ""); err != nil || !proxy {
		return err
	}
	for i, pattern := range n.Allow {
		if err := checkPattern(pattern); err != nil {
			return fail(index("network.allow", i), "found %s, %v", quote(pattern), err)
		}
	}
	if err := checkProxy(n.Proxy); err != nil {
		return fail("network.proxy", "found %s, %v", quote(n.Proxy), err)
	}
	return nil
}

// checkPattern judges one host pattern: a name or an IPv4 address, "*." in front
// of a name for everything below it, and ":port" behind.
func checkPattern(pattern string) error {
	host, port, hasPort := strings.Cut(pattern, ":")
	if strings.Contains(port, ":") {
		return fmt.Errorf("expected a host name with an optional port; IPv6 addresses cannot be patterns, name the host")
	}
	if hasPort {
		if err := checkPort(port); err != nil {
			return err
		}
	}
	if host == "*" {
		return fmt.Errorf(`expected a host name; for every host use mode "full"`)
	}
	below, wild := strings.CutPrefix(host, "*.")
	if strings.Contains(below, "*") {
		return fmt.Errorf(`expected "*" as the whole first label only, as in "*.example.org"`)
	}
	numeric, err := checkHost(below)
	if err == nil && wild && numeric {
		return fmt.Errorf(`expected a host name behind "*."; list the addresses one by one`)
	}
	return err
}

// checkProxy judges "host:port", where host may be an IPv6 address in brackets.
func checkProxy(s string) error {
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return fmt.Errorf(`expected "host:port"`)
	}
	host, port := s[:at], s[at+1:]
	if err := checkPort(port); err != nil {
		return err
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !strings.HasSuffix(inner, "]") || !addr.Is6() || addr.Zone() != "" {
			return fmt.Errorf(`expected an IPv6 address without a zone in the brackets, as in "[::1]:3128"`)
		}
		return nil
	}
	if strings.Contains(host, ":") {
		return fmt.Errorf(`expected "host:port"; put an IPv6 address in brackets, as in "[::1]:3128"`)
	}
	_, err := checkHost(host)
	return err
}

func checkPort(s string) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' {
		return fmt.Errorf("expected a port of 1 to 65535 in decimal behind the colon")
	}
	return nil
}

// checkHost judges a host name by RFC 1123 and, for its encoded labels, RFC 5891,
// or an IPv4 address (numeric). Names are compared as they are, so only the
// spelling that goes over the wire is accepted.
func checkHost(host string) (numeric bool, err error) {
	if host == "" {
		return false, fmt.Errorf("expected a host name")
	}
	if len(host) > 253 { // first: encoding a name takes the square of its length
		return false, fmt.Errorf("expected a host name of at most 253 bytes")
	}
	if err := checkASCII(host); err != nil {
		return false, err
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return false, err
		}
	}
	// A last label that is a number makes resolvers read the whole as an address,
	// in more notations than one (URL standard, "ends in a number").
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x") {
		return false, nil
	}
	if addr, err := netip.ParseAddr(host); err != nil || addr.String() != host {
		return true, fmt.Errorf("expected a host name, or an IPv4 address in its usual form of four decimal numbers")
	}
	return true, nil
}

func checkASCII(host string) error {
	for i := range len(host) {
		switch c := host[i]; {
		case c >= 0x80:
			if ascii, err := idna.Registration.ToASCII(host); err == nil {
				return fmt.Errorf("expected the ASCII form that goes over the wire; write %q", ascii)
			}
			return fmt.Errorf("expected a host name in ASCII; write the encoded form (xn--...)")
		case c >= 'A' && c <= 'Z':
			return fmt.Errorf("expected lower case; write %s", quote(strings.ToLower(host)))
		case c == '.' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
		default:
			return fmt.Errorf("expected letters, digits, hyphens and dots only, but there is %q", string(c))
		}
	}
	return nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return fmt.Errorf("expected no empty label; remove the extra dot")
	case len(label) > 63:
		return fmt.Errorf("expected labels of at most 63 bytes")
	case label[0] == '-' || label[len(label)-1] == '-':
		return fmt.Errorf("expected no hyphen at either end of a label")
	case !strings.HasPrefix(label, "xn--"):
		return nil
	}
	// Per label, since IDNA also refuses "--" in the third place of plain labels,
	// which names in use have (r3---sn-...). Twice, since decoding alone accepts
	// labels that no name encodes to.
	name, err := idna.Registration.ToUnicode(label)
	if err == nil {
		var again string
		if again, err = idna.Registration.ToASCII(name); err == nil && again == label {
			return nil
		}
	}
	return fmt.Errorf("expected a valid internationalised label, which %q is not", label)
}
