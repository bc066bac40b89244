package routing_test

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"specialroutes.example/services/routing"
	"specialroutes.example/services/routing/routingtest"
)

func TestEndpoint_TakenApart(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]routing.BaseURL{
		"http://orgservice-new:8087":    {Scheme: "http", Authority: "orgservice-new:8087", Address: "orgservice-new:8087", Host: "orgservice-new"},
		"http://localhost:8087/":        {Scheme: "http", Authority: "localhost:8087", Address: "localhost:8087", Host: "localhost"},
		"https://API.example.org":       {Scheme: "https", Authority: "API.example.org", Address: "api.example.org:443", Host: "api.example.org"},
		"h2c://h":                       {Scheme: "h2c", Authority: "h", Address: "h:80", Host: "h"},
		"h2://h/base":                   {Scheme: "h2", Authority: "h", Address: "h:443", Host: "h", Path: "/base"},
		"H2C://h:8080":                  {Scheme: "h2c", Authority: "h:8080", Address: "h:8080", Host: "h"},
		"HTTP://h":                      {Scheme: "http", Authority: "h", Address: "h:80", Host: "h"},
		"http://h/a%2Fb//c;d=1/":        {Scheme: "http", Authority: "h", Address: "h:80", Host: "h", Path: "/a%2Fb//c;d=1"},
		"http://127.0.0.1:1/x":          {Scheme: "http", Authority: "127.0.0.1:1", Address: "127.0.0.1:1", Host: "127.0.0.1", Path: "/x"},
		"http://[::1]:65535":            {Scheme: "http", Authority: "[::1]:65535", Address: "[::1]:65535", Host: "::1"},
		"https://[2001:DB8::1]/base":    {Scheme: "https", Authority: "[2001:DB8::1]", Address: "[2001:db8::1]:443", Host: "2001:db8::1", Path: "/base"},
		"http://svc.ns.svc.cluster.l.:": {},
		"http://svc.cluster.local.:80":  {Scheme: "http", Authority: "svc.cluster.local.:80", Address: "svc.cluster.local.:80", Host: "svc.cluster.local."},
		"http://my_app_1.net":           {Scheme: "http", Authority: "my_app_1.net", Address: "my_app_1.net:80", Host: "my_app_1.net"},
		"http://h/...":                  {Scheme: "http", Authority: "h", Address: "h:80", Host: "h", Path: "/..."},
	} {
		rt, err := routing.Compile(routingtest.Book("s", 5, endpoint), nil)
		if want.Scheme == "" {
			if err == nil {
				t.Errorf("%s is accepted", endpoint)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", endpoint, err)
			continue
		}
		if got := rt.Variant(1); *got.URL != want || got.Endpoint != endpoint {
			t.Errorf("%s = %+v, want %+v", endpoint, *got.URL, want)
		}
		if rt.Variant(0).URL != nil {
			t.Errorf("%s: the other variant has a URL too", endpoint)
		}
	}
}

// refusedAddresses are spellings of link-local and metadata addresses.
var refusedAddresses = []string{
	"169.254.169.254", "169.254.0.1", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[0:0:0:0:0:ffff:a9fe:a9fe]",
	"[::169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[fe80::1]", "[FE80::1]", "[febf::1]",
	"[fd00:ec2::254]", "[fd20:ce::254]", "100.100.100.200", "168.63.129.16", "192.0.0.192", "[::ffff:168.63.129.16]", "[64:ff9b::168.63.129.16]",
}

func TestEndpoint_Refused(t *testing.T) {
	t.Parallel()
	endpoints := []string{
		"", "h", "h:80", "//h", "/path", "http:", "http:/h", "http:h", "http://", "http:///path", "http://:80",
		"ftp://h", "h3://h", "h2c:h", "h2c//h", "grpc://h", "ws://h", "file:///etc/passwd", "javascript:alert(1)", " http://h", "http://h ",
		"http://h h", "http://h/a b", "http://h\t", "http://h/\x00", "http://h/ä", "http://größe", "http://h\\@x", "http://h/\\",
		"http://h?x", "http://h/?", "http://h#x", "http://h/#", "http://u@h", "http://u:p@h", "http://@h", "http://h@",
		"http://h:", "http://h:0", "http://h:65536", "http://h:-1", "http://h:80a", "http://h:080", "http://h:+80", "http://h:80:80",
		"http://-h", "http://h-", "http://a..b", "http://.a", "http://.", "http://h%41", "http://%31", "http://h,x", "http://[h]",
		"http://" + strings.Repeat("a", 64), "http://" + strings.Repeat("a.", 127) + "a",
		"http://h/" + strings.Repeat("a", 2048-len("http://h/")+1),
		"http://[::1", "http://::1", "http://[::1]x", "http://[::1]]", "http://[127.0.0.1]", "http://[::1%25eth0]", "http://[fe80::1%25eth0]", "http://[fe80::1%eth0]",
		"http://2130706433", "http://2852039166", "http://0x7f.1", "http://0xa9fea9fe", "http://0177.0.0.1", "http://127.1", "http://127.0.0.1.",
		"http://1.2.3", "http://1.2.3.4.5", "http://256.1.1.1", "http://01.2.3.4", "http://a.1", "http://a.0x", "http://169.254.169.254.",
		"http://0.0.0.0", "http://[::]", "http://[::ffff:0.0.0.0]", "http://239.1.1.1", "http://[ff02::1]",
		"http://h/.", "http://h/..", "http://h/a/../b", "http://h/%2e%2E/b", "http://h/.%2e", "http://h/a%2F..%2Fb", "http://h/..;x/b", "http://h/%2e;",
		"http://h/%", "http://h/%a", "http://h/%zz", "http://h/%00", "http://h/%5c", "http://h/%5C",
	}
	for _, host := range refusedAddresses {
		endpoints = append(endpoints, "http://"+host, "https://"+host+":8080/latest", "h2c://"+host, "h2://"+host)
	}
	for _, endpoint := range endpoints {
		errs := routingtest.Book("s", 5, endpoint).Validate()
		if len(errs) != 1 || errs[0].Pointer != "/variants/1/endpoint" || errs[0].Detail == "" {
			t.Errorf("%q: %v, want one error of the endpoint", endpoint, errs)
		}
	}
	longest := "http://h/" + strings.Repeat("a", 2048-len("http://h/"))
	if errs := routingtest.Book("s", 5, longest).Validate(); errs != nil {
		t.Errorf("an endpoint of 2048 bytes: %v", errs)
	}
}

func TestEndpoint_AllowLinkLocal(t *testing.T) {
	t.Parallel()
	for _, host := range refusedAddresses {
		r := routingtest.Book("s", 5, "http://"+host)
		if errs := r.Validate(routing.AllowLinkLocal()); errs != nil {
			t.Errorf("%s: %v", host, errs)
		}
		if _, err := routing.Compile(r, nil, routing.AllowLinkLocal()); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if errs := routingtest.Book("s", 5, "http://2852039166").Validate(routing.AllowLinkLocal()); errs == nil {
		t.Error("a number for a host is accepted when link-local addresses are allowed")
	}
}

func TestRefusedAddress(t *testing.T) {
	t.Parallel()
	for _, host := range refusedAddresses {
		if a := netip.MustParseAddr(strings.Trim(host, "[]")); !routing.RefusedAddress(a) {
			t.Errorf("%s is not refused", a)
		}
	}
	if !routing.RefusedAddress(netip.MustParseAddr("fe80::1%eth0")) {
		t.Error("an address with a zone is not refused")
	}
	for _, s := range []string{"127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "169.253.1.1", "169.255.1.1", "100.100.100.201",
		"fd00:ec3::254", "fec0::1", "2001:db8::a9fe:a9fe", "64:ff9b::1.2.3.4", "2002:102:304::1", "::ffff:10.0.0.1", "8.8.8.8"} {
		if routing.RefusedAddress(netip.MustParseAddr(s)) {
			t.Errorf("%s is refused", s)
		}
	}
	if routing.RefusedAddress(netip.Addr{}) {
		t.Error("the zero address is refused")
	}
}

// leadsToRefused reads a host in the ways of inet_aton, as resolvers do: one to
// four numbers, decimal, octal or hexadecimal, of which the last fills the rest.
func leadsToRefused(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return routing.RefusedAddress(a)
	}
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return false
	}
	var addr uint64
	for i, p := range parts {
		base := 10
		if digits, ok := strings.CutPrefix(p, "0x"); ok {
			base, p = 16, digits
		} else if len(p) > 1 && p[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseUint(p, base, 32)
		if err != nil {
			return false
		}
		if i == len(parts)-1 {
			addr += n
		} else {
			addr += n << (24 - 8*i)
		}
	}
	return routing.RefusedAddress(netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}))
}
