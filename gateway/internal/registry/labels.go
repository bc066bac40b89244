package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The bounds of an instance's labels, those of docs/openapi.yaml.
const (
	labelNameMost  = 63  // bytes
	labelValueMost = 255 // bytes
	labelsMost     = 64
)

// keepUsableLabels leaves out the labels that cannot be used, and warns of each. The
// instance stays in use: tags are also other programs' business, and a long one of
// theirs must not take a service away.
func (i *Instance) keepUsableLabels() {
	if i.allUsable() {
		i.Labels = maps.Clone(i.Labels)
		return
	}
	labels := make(map[string]string, len(i.Labels))
	i.Warnings = slices.Clone(i.Warnings)
	for _, name := range i.labelsInOrder() {
		if why := badLabel(name, i.Labels[name]); why != "" {
			i.Warnings = append(i.Warnings, fmt.Sprintf("the label %s is left out: %s", quoted(name), why))
		} else if len(labels) == labelsMost {
			i.Warnings = append(i.Warnings, fmt.Sprintf("the label %s is left out: there are more than %d", quoted(name), labelsMost))
		} else {
			labels[name] = i.Labels[name]
		}
	}
	const warnings = 16
	if more := len(i.Warnings) - warnings; more > 0 {
		i.Warnings = append(i.Warnings[:warnings:warnings], fmt.Sprintf("and %d more", more))
	}
	i.Labels = labels
	i.FromMeta = slices.DeleteFunc(slices.Clone(i.FromMeta), func(name string) bool {
		_, kept := labels[name]
		return !kept
	})
}

// allUsable reports whether no label is to be left out.
func (i *Instance) allUsable() bool {
	for name, value := range i.Labels {
		if badLabel(name, value) != "" {
			return false
		}
	}
	return len(i.Labels) <= labelsMost
}

// labelsInOrder returns the names of all labels, those from the meta first: where
// there are too many, it is the tags that are left out.
func (i *Instance) labelsInOrder() []string {
	names := slices.Sorted(maps.Keys(i.Labels))
	if len(names) <= labelsMost || len(i.FromMeta) == 0 {
		return names
	}
	slices.SortStableFunc(names, func(a, b string) int {
		_, inA := slices.BinarySearch(i.FromMeta, a)
		_, inB := slices.BinarySearch(i.FromMeta, b)
		switch {
		case inA && !inB:
			return -1
		case inB && !inA:
			return 1
		}
		return 0
	})
	return names
}

// badLabel says why a label cannot be used, "" when it can.
func badLabel(name, value string) string {
	switch {
	case name == "":
		return "it has no name"
	case len(name) > labelNameMost:
		return fmt.Sprintf("the name has more than %d bytes", labelNameMost)
	case len(value) > labelValueMost:
		return fmt.Sprintf("the value has more than %d bytes", labelValueMost)
	case strings.Contains(name, "="):
		return "the name holds ="
	case strings.ContainsFunc(name, control) || strings.ContainsFunc(value, control):
		return "it holds control characters"
	}
	return ""
}

func control(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// quoted is a name that is fit to be shown.
func quoted(name string) string {
	const most = 80
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
