package registry

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkKnown is what the file costs with 100,000 instances: its writing, which
// happens beside requests, and its reading at the start.
func BenchmarkKnown(b *testing.B) {
	known := []Known{{Service: "a", AsOf: time.Unix(0, 0)}}
	for i := range 100_000 {
		known[0].Instances = append(known[0].Instances, Instance{
			ID: fmt.Sprintf("i%06d", i), Address: fmt.Sprintf("10.0.%d.%d:80", i>>8&255, i&255),
			Labels: map[string]string{"version": "1.0.0", "app": "x", "zone": "a"},
		})
	}
	text, err := MarshalKnown(known)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if _, err := MarshalKnown(known); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := UnmarshalKnown(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
