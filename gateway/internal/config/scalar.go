package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// isScalar reports whether a setting of this type is written as one plain value.
func isScalar(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[netip.Prefix](), reflect.TypeFor[slog.Level]():
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
		return true
	}
	return false
}

// setScalar sets v to the value that text stands for. The error says what the
// text should have been.
func setScalar(v reflect.Value, text string) error {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *ClientLabels:
		*p = ClientLabels(text)
	case *bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*p = text == "true"
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		*p = n
	case *Bytes:
		return setBytes(p, text)
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 500ms, 2.5s or 1h", text)
		}
		*p = d
	case *netip.Prefix:
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("%q is not a CIDR such as 10.0.0.0/8", text)
		}
		*p = prefix
	case *slog.Level:
		return setLevel(p, text)
	default:
		panic("config: no way to read a setting of type " + v.Type().String())
	}
	return nil
}

func setLevel(p *slog.Level, text string) error {
	switch text {
	case "debug", "info", "warn", "error":
		return p.UnmarshalText([]byte(text))
	}
	return fmt.Errorf("%q is none of debug, info, warn, error", text)
}

// setBytes reads an integer with an optional binary unit.
func setBytes(p *Bytes, text string) error {
	wrong := fmt.Errorf("%q is not a size such as 65536, 64KiB, 1MiB or 2GiB", text)
	number, shift := text, 0
	for unit, s := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if before, ok := strings.CutSuffix(text, unit); ok {
			number, shift = before, s
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if errors.Is(err, strconv.ErrRange) || n > math.MaxInt64>>shift || n < math.MinInt64>>shift {
		return fmt.Errorf("%q is too large", text)
	}
	if err != nil {
		return wrong
	}
	*p = Bytes(n << shift)
	return nil
}
