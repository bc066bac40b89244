package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// ErrHelp is returned by Load when the arguments ask for the list of flags.
var ErrHelp = flag.ErrHelp

// configVariable names the file, as the flag --config does.
const configVariable = "GATEWAY_CONFIG"

// Load returns the settings that the arguments (flags only), the environment
// ("KEY=value") and the file named by --config or GATEWAY_CONFIG make together:
// flags over environment over file over defaults. It reads that file and nothing
// else, apart from the host's name where no ID is set. The error is an
// *InvalidError with every mistake, or ErrHelp.
func Load(args, environ []string) (*Config, error) {
	flags, err := parseFlags(args)
	if err != nil {
		return nil, err
	}
	d := read(flags, parseEnviron(environ))
	d.complete()
	d.validate()
	if len(d.mistakes) > 0 {
		return nil, &InvalidError{Mistakes: d.mistakes}
	}
	return &d.config, nil
}

// read puts the file over the defaults, the environment over that, and the flags
// over both.
func read(flags, env map[string]string) *draft {
	d := &draft{config: Default(), origins: map[string]origin{"": {source: "configuration"}}}
	file := env[configVariable]
	if f, ok := flags["config"]; ok {
		file = f
	}
	if file != "" {
		d.file(file)
	}
	d.overlay(env, flags)
	return d
}

// file reads the settings of the YAML file.
func (d *draft) file(name string) {
	d.origins[""] = origin{source: name}
	text, err := os.ReadFile(name)
	if err != nil {
		d.mistake("", "cannot be read: %s", err)
		return
	}
	d.document(name, "", text, reflect.ValueOf(&d.config).Elem())
}

// setting is one value that the file, the environment and a flag can set.
type setting struct {
	path  string // in the file, as in records.tokenFile
	value reflect.Value
}

// settings lists the settings of c in the order of their declaration.
func settings(c *Config) []setting {
	var all []setting
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			at := join(path, v.Type().Field(i).Tag.Get("yaml"))
			if f := v.Field(i); f.Kind() == reflect.Struct && !isScalar(f.Type()) {
				walk(f, at)
			} else {
				all = append(all, setting{at, f})
			}
		}
	}
	walk(reflect.ValueOf(c).Elem(), "")
	return all
}

// words splits the path where a word starts: records.tokenFile is records, token
// and File. Initialisms stay whole.
func (s setting) words() []string {
	var words []string
	for _, part := range strings.Split(s.path, ".") {
		start := 0
		for i, r := range part {
			if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(part[i-1])) {
				words = append(words, part[start:i])
				start = i
			}
		}
		words = append(words, part[start:])
	}
	return words
}

// variable is the environment variable of the setting.
func (s setting) variable() string {
	return "GATEWAY_" + strings.ToUpper(strings.Join(s.words(), "_"))
}

// flag is the flag of the setting, without dashes; "" where it has none, because
// its value is a document.
func (s setting) flag() string {
	if !s.plain() {
		return ""
	}
	return strings.ToLower(strings.Join(s.words(), "-"))
}

// plain reports whether the setting is one plain value or a list of them.
func (s setting) plain() bool {
	t := s.value.Type()
	return isScalar(t) || t.Kind() == reflect.Slice && isScalar(t.Elem())
}

// parseEnviron returns the variables by name. An empty one counts as absent,
// because compose files and the like cannot leave one out.
func parseEnviron(environ []string) map[string]string {
	env := make(map[string]string)
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && value != "" {
			env[name] = value
		}
	}
	return env
}

// Unknown returns the variables that begin as the gateway's do and are no setting,
// in order. They are no mistake, because an orchestrator may set some for a service
// that is called gateway; but a misspelt one is among them.
func Unknown(environ []string) []string {
	known := map[string]bool{configVariable: true}
	defaults := Default()
	for _, s := range settings(&defaults) {
		known[s.variable()] = true
	}
	var unknown []string
	for name := range parseEnviron(environ) {
		if strings.HasPrefix(name, "GATEWAY_") && !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// parseFlags returns the flags that args give, by name, as text.
func parseFlags(args []string) (map[string]string, error) {
	given := make(map[string]string)
	set := newFlagSet()
	set.SetOutput(io.Discard)
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, ErrHelp
		}
		return nil, &InvalidError{[]Mistake{{Source: "flags", Detail: err.Error()}}}
	}
	if set.NArg() > 0 {
		return nil, &InvalidError{[]Mistake{{Source: "flags", Detail: fmt.Sprintf("unexpected argument %q", set.Arg(0))}}}
	}
	set.Visit(func(f *flag.Flag) { given[f.Name] = f.Value.String() })
	return given, nil
}

// newFlagSet has a flag for the file and one for each plain setting.
func newFlagSet() *flag.FlagSet {
	set := flag.NewFlagSet("gateway", flag.ContinueOnError)
	set.String("config", "", "the YAML `file` of settings; "+configVariable)
	defaults := Default()
	for _, s := range settings(&defaults) {
		if s.flag() != "" {
			set.String(s.flag(), s.text(), s.path+"; "+s.variable())
		}
	}
	return set
}

// text is the value as a flag takes it, "" for one that is zero.
func (s setting) text() string {
	switch v := s.value.Interface().(type) {
	case slog.Level:
		return strings.ToLower(v.String())
	case []string:
		return strings.Join(v, ",")
	}
	if s.value.IsZero() || s.value.Kind() == reflect.Slice {
		return ""
	}
	return fmt.Sprint(s.value.Interface())
}

// usage stands before the list of flags.
const usage = `Usage: gateway [command] [flags]

Commands:
  serve        serve; what happens without a command too
  check        say whether the settings can be used, and end
  healthcheck  ask the process that serves whether it lives
  version      say what this binary is

Settings come from a YAML file, variables of the environment over it, and flags over
both. Each flag names its place in the file and its variable; routes and instances
are set in the file, or as YAML in GATEWAY_ROUTES and GATEWAY_INSTANCES. The least
that is needed is a route:

  GATEWAY_ROUTES='[{prefix: /api/shop, service: shop}]' \
  GATEWAY_INSTANCES='{shop: [{address: "127.0.0.1:8080"}]}' gateway

docs/configuration.md says what each of them means.

Flags:
`

// Usage writes the commands and the list of flags.
func Usage(w io.Writer) {
	set := newFlagSet()
	set.SetOutput(w)
	fmt.Fprint(w, usage)
	set.PrintDefaults()
}

// overlay puts the environment, and the flags over it, over the settings so far.
func (d *draft) overlay(env, flags map[string]string) {
	for _, s := range settings(&d.config) {
		if text, ok := env[s.variable()]; ok {
			d.set(s, "environment "+s.variable(), text)
		}
		if text, ok := flags[s.flag()]; ok && s.flag() != "" {
			d.set(s, "flag --"+s.flag(), text)
		}
	}
}

// set replaces a setting by what text says: a plain value, a comma-separated list
// of them, or a YAML document.
func (d *draft) set(s setting, source, text string) {
	d.forget(s.path)
	d.origins[s.path] = origin{source: source}
	if !s.plain() {
		s.value.SetZero()
		d.document(source, s.path, []byte(text), s.value)
		return
	}
	if isScalar(s.value.Type()) {
		if err := setScalar(s.value, text); err != nil {
			d.mistake(s.path, "%s", err)
		}
		return
	}
	parts := strings.Split(text, ",")
	list := reflect.MakeSlice(s.value.Type(), len(parts), len(parts))
	for i, part := range parts {
		if err := setScalar(list.Index(i), strings.TrimSpace(part)); err != nil {
			d.mistake(fmt.Sprintf("%s[%d]", s.path, i), "%s", err)
		}
	}
	s.value.Set(list)
}

// complete fills in what depends on other settings.
func (d *draft) complete() {
	c := &d.config
	if c.ID == "" {
		if name, err := os.Hostname(); err == nil {
			c.ID = name
		}
	}
	for i := range c.Routes {
		r := &c.Routes[i]
		r.Timeouts = r.TimeoutsSet.over(c.Timeouts)
		if r.SensitiveHeaders == nil {
			r.SensitiveHeaders = c.SensitiveHeaders
		}
	}
	for _, instances := range c.Instances {
		for i := range instances {
			if instances[i].ID == "" {
				instances[i].ID = instances[i].Address
			}
		}
	}
}
