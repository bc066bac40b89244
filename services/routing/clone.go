package routing

import (
	"maps"
	"slices"
)

// Clone returns a copy that shares nothing with r which could be changed.
func (r *Record) Clone() *Record {
	c := *r
	c.Active, c.Default, c.OnUnavailable = copied(r.Active), copied(r.Default), copied(r.OnUnavailable)
	c.Owner, c.Ends, c.Sticky = copied(r.Owner), copied(r.Ends), copied(r.Sticky)
	if s := c.Sticky; s != nil {
		s.Name, s.Salt, s.Missing, s.MaxAge = copied(s.Name), copied(s.Salt), copied(s.Missing), copied(s.MaxAge)
	}
	c.Variants = slices.Clone(r.Variants)
	for i := range c.Variants {
		v := &c.Variants[i]
		v.Weight, v.Endpoint, v.Service = copied(v.Weight), copied(v.Endpoint), copied(v.Service)
		v.Selector = maps.Clone(v.Selector)
	}
	c.Rules = slices.Clone(r.Rules)
	for i := range c.Rules {
		u := &c.Rules[i]
		u.Variant, u.Weights, u.Match = copied(u.Variant), maps.Clone(u.Weights), slices.Clone(u.Match)
		for j := range u.Match {
			m := &u.Match[j]
			m.Name, m.Prefix, m.Regex = copied(m.Name), copied(m.Prefix), copied(m.Regex)
			m.CIDR, m.Present, m.In = copied(m.CIDR), copied(m.Present), slices.Clone(m.In)
		}
	}
	c.LabelRules = slices.Clone(r.LabelRules)
	for i := range c.LabelRules {
		l := &c.LabelRules[i]
		l.Fallback, l.Guard = copied(l.Fallback), slices.Clone(l.Guard)
	}
	return &c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
