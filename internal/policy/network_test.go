package policy

import (
	"strings"
	"testing"

	"sandboxd/protocol"
)

func withNetwork(allow, proxy string) protocol.Policy {
	return plain(func(p *protocol.Policy) {
		p.Network = protocol.Network{Mode: protocol.NetProxy, Allow: []string{allow}, Proxy: proxy}
	})
}

func TestHostPatterns(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	for _, ok := range []string{
		"registry.example.org", "*.github.com", "localhost", "*.com", "example.org:443", "*.example.org:65535", "h:1",
		"127.0.0.1", "10.0.0.1:8080", "xn--mnchen-3ya.de", "*.xn--bcher-kva.example", "r3---sn-abc.example", "1.2.3.example", "3com.com",
		label63 + ".org", "a." + label63[:61] + "." + label63 + "." + label63 + "." + label63[:61],
	} {
		if err := Validate(withNetwork(ok, "h:1")); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for bad, msg := range map[string]string{
		"": "host name", "*": `mode "full"`, "*:443": `mode "full"`, "*.": "host name", "*.*.org": "first label", "a.*.org": "first label",
		"*a.org": "first label", "**.org": "first label", ":443": "host name", "h:": "port", "h:0": "port", "h:65536": "port", "h:+1": "port",
		"h:01": "port", "h:x": "port", "h:1:2": "IPv6", "[::1]": "IPv6", "::1": "IPv6", "Example.org": `write "example.org"`,
		"münchen.de": `write "xn--mnchen-3ya.de"`, "exa mple": "letters", "a_b.org": "letters", "https://h": "port", "h/p": "letters",
		"a..b": "empty label", ".a": "empty label", "a.": "empty label", "-a.org": "hyphen", "a-.org": "hyphen", label63 + "a.org": "63",
		strings.Repeat("a.", 127): "253", "xn--a": "internationalised", "xn--zz.org": "internationalised", "xn--abc-.org": "hyphen",
		"*.0.0.1": "IPv4", "*.127.0.0.1": "one by one", "1.2.3": "IPv4", "127.0.0.01": "IPv4", "256.1.1.1": "IPv4", "0x7f.0.0.0x1": "IPv4", "a.1": "IPv4",
	} {
		wantError(t, Validate(withNetwork(bad, "h:1")), "network.allow[0]", msg)
	}
}

func TestProxyAddress(t *testing.T) {
	for _, ok := range []string{"127.0.0.1:3128", "proxy.example.org:80", "localhost:65535", "[::1]:3128", "[fe80::1]:1"} {
		if err := Validate(withNetwork("h", ok)); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for bad, msg := range map[string]string{
		"": "host:port", "h": "host:port", "h:0": "port", "h:99999": "port", ":80": "host name", "::1:80": "brackets", "[::1]": "port",
		"[::1:80": "brackets", "[1.2.3.4]:80": "brackets", "[fe80::1%eth0]:80": "zone", "[]:80": "brackets", "*.a:80": "letters",
		"http://h:80": "brackets", "H:80": "lower case", "u@h:80": "letters",
	} {
		wantError(t, Validate(withNetwork("h", bad)), "network.proxy", msg)
	}
}

// Encoding a name takes the square of its length: a long one is refused before.
func TestLongHostsAreNotEncoded(t *testing.T) {
	var b strings.Builder
	for r := rune(0x4e00); r < 0x9fff; r++ {
		b.WriteRune(r)
	}
	for _, host := range []string{strings.Repeat("ü", 127), b.String(), strings.Repeat(b.String(), 20)} {
		if _, err := checkHost(host); err == nil || !strings.Contains(err.Error(), "at most 253 bytes") {
			t.Errorf("%d bytes: %.200v", len(host), err)
		}
	}
	if _, err := checkHost("bücher.example"); err == nil || !strings.Contains(err.Error(), "xn--bcher-kva.example") {
		t.Errorf("a short one: %v", err)
	}
}
