package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// span is a flag that says how long something holds: a Go duration, or whole days.
type span time.Duration

// mostDays keeps a number of days within a span; what is allowed is said elsewhere.
const mostDays = 100_000

// Set, String and Type make it a flag.
func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if number, isDays := strings.CutSuffix(text, "d"); isDays {
		var days int
		days, err = strconv.Atoi(number)
		if days > mostDays {
			err = errors.New("too many")
		}
		d = time.Duration(days) * 24 * time.Hour
	}
	switch {
	case err != nil:
		return errors.New("want a time as 90m, 8h or 7d")
	case d <= 0:
		return errors.New("want more than nothing, as 90m, 8h or 7d")
	}
	*s = span(d)
	return nil
}

func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *span) Type() string { return "long" }
