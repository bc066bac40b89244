package registry

import "testing"

func TestNewSnapshotSetsAside(t *testing.T) {
	t.Parallel()
	for address, usable := range map[string]bool{
		"10.0.0.1:80": true, "host:1": true, "[::1]:65535": true, "[fe80::1%eth0]:80": true,
		"": false, ":80": false, "host": false, "host:": false, "host:0": false, "host:65536": false,
		"host:http": false, "::1:80": false, "host:-1": false,
		"a_b.example-1:80": true, "a b:80": false, "http://a:80": false, "a/b:80": false, "h\u00f6st:80": false, "a\n:80": false,
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

func TestWithKeepsWhatHasNotChanged(t *testing.T) {
	t.Parallel()
	list := func(label string) []Instance {
		return []Instance{{ID: "x", Address: "h:1", Labels: map[string]string{"v": label}}, {ID: "y", Address: "h:2"}, {ID: "z", Address: "h:0"}}
	}
	first := NewSnapshot(map[string][]Instance{"a": list("1"), "b": {{ID: "x", Address: "h:9"}, {ID: "q", Address: ""}}})
	if first.With("a", list("1")) != first || first.With("nobody", nil) != first {
		t.Error("equal data give another snapshot")
	}
	next := first.With("a", list("2"))
	if next == first || next.Instances("a")[0] == first.Instances("a")[0] || next.Instances("a")[0].Labels["v"] != "2" {
		t.Error("a changed label is not in the next snapshot")
	}
	if next.Instances("a")[1] != first.Instances("a")[1] || next.Instances("b")[0] != first.Instances("b")[0] {
		t.Error("an instance that has not changed is another one")
	}
	if first.Instances("a")[0].Labels["v"] != "1" || len(next.SetAside()) != 2 {
		t.Errorf("the first snapshot has changed, or what is set aside has: %v", next.SetAside())
	}
	unconfirmed := list("2")
	unconfirmed[1].Unconfirmed = true
	if next.With("a", unconfirmed) == next {
		t.Error("an instance that became unconfirmed changes nothing")
	}
	empty := next.With("a", nil)
	if len(empty.Instances("a")) != 0 || len(empty.SetAside()) != 1 || len(empty.Services()) != 1 {
		t.Errorf("without instances: %v %v", empty.Services(), empty.SetAside())
	}
}
