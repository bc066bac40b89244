package bench

import "testing"

func TestMediansComeWithTheirRange(t *testing.T) {
	for _, test := range []struct {
		v    values
		want string
	}{
		{nil, "–"},
		{values{3}, "3.0 (3.0–3.0)"},
		{values{5, 1, 3}, "3.0 (1.0–5.0)"},
		{values{4, 1, 2, 9}, "3.0 (1.0–9.0)"},
	} {
		if got := test.v.format("%.1f"); got != test.want {
			t.Errorf("%v: %s, want %s", test.v, got, test.want)
		}
	}
}

// A slow minute of the machine that hits both sides of a round does not widen the
// range of the ratio.
func TestARatioComparesTheRoundsThatWereNextToEachOther(t *testing.T) {
	got := ratioOf(values{10, 20, 40}, values{5, 10, 20})
	if want := "2.00 (2.00–2.00)"; got.String() != want {
		t.Errorf("ratio = %s, want %s", got, want)
	}
	if none := ratioOf(nil, nil).String(); none != "–" {
		t.Errorf("ratio of nothing = %q", none)
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(100 - i)
	}
	if got := quantile(hundred, 0.99); got != 100 {
		t.Errorf("p99 of 1..100 = %d, want 100: 99 %% lie below it", got)
	}
	if got := quantile(hundred, 0.5); got != 51 {
		t.Errorf("p50 of 1..100 = %d, want 51", got)
	}
	if got := quantile([]int64(nil), 0.5); got != 0 {
		t.Errorf("p50 of nothing = %d", got)
	}
}
