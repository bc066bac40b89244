package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"specialroutes.example/specialroutes/internal/config"
)

func TestEverySettingIsInTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/specialroutes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| --- | --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var got, want []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		got = append(got, strings.NewReplacer("`", "", " ", "").Replace(strings.Join(cells[1:4], "|")))
	}
	flags := pflag.NewFlagSet("specialroutes", pflag.ContinueOnError)
	flags.SortFlags = false
	config.Bind(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		_, variable, _ := strings.Cut(f.Usage, "[")
		want = append(want, "--"+f.Name+"|"+strings.TrimSuffix(variable, "]")+"|"+f.DefValue)
	})
	if !slices.Equal(got, want) {
		t.Errorf("docs/specialroutes.md has\n%s\nthe settings are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
