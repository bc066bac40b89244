package registry

import "testing"

func TestNewSnapshotSetsAside(t *testing.T) {
	t.Parallel()
	for address, usable := range map[string]bool{
		"10.0.0.1:80": true, "host:1": true, "[::1]:65535": true, "[fe80::1%eth0]:80": true,
		"": false, ":80": false, "host": false, "host:": false, "host:0": false, "host:65536": false,
		"host:http": false, "::1:80": false, "host:-1": false,
	} {
		s := NewSnapshot(map[string][]Instance{"a": {{ID: "x", Address: address}}})
		if got := len(s.Instances("a")) == 1; got != usable || len(s.SetAside()) == 1 == usable {
			t.Errorf("address %q: usable %v, set aside %v; want usable %v", address, got, s.SetAside(), usable)
		}
	}
}

func TestNewSnapshotKeepsTheFirstOfTwoWithOneID(t *testing.T) {
	t.Parallel()
	s := NewSnapshot(map[string][]Instance{"a": {{ID: "x", Address: "h:1"}, {ID: "x", Address: "h:2"}}, "b": {{ID: "x", Address: "h:3"}}})
	if got := s.Instances("a"); len(got) != 1 || got[0].Address != "h:1" {
		t.Errorf("Instances(a) = %v, want the first", got)
	}
	if len(s.Instances("b")) != 1 || len(s.SetAside()) != 1 {
		t.Errorf("the same ID in another service is set aside: %v", s.SetAside())
	}
}
