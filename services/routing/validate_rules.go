package routing

import "strings"

// rules checks the rules against the names of the variants.
func (c *checker) rules(rules []Rule, known map[string]bool) {
	if len(rules) > MaxRules {
		c.add("/rules", "must hold at most 64 rules")
	}
	names := map[string]bool{}
	for i := range rules[:min(len(rules), MaxRules)] {
		u := &rules[i]
		where := at("/rules", i, "")
		if c.name(where+"/name", u.Name) && names[u.Name] {
			c.add(where+"/name", "is the name of an earlier rule")
		}
		names[u.Name] = true
		if len(u.Match) == 0 || len(u.Match) > maxMatches {
			c.add(where+"/match", "must hold 1 to 16 matches")
		}
		for j := range u.Match[:min(len(u.Match), maxMatches)] {
			c.match(at(where+"/match", j, ""), &u.Match[j])
		}
		c.outcome(where, u, known)
	}
}

// outcome checks where a rule leads.
func (c *checker) outcome(where string, u *Rule, known map[string]bool) {
	switch {
	case u.Variant == nil && u.Weights == nil:
		c.add(where, "must have a variant or weights")
	case u.Variant != nil && u.Weights != nil:
		c.add(where, "must have a variant or weights, not both")
	}
	if u.Variant != nil && !known[*u.Variant] {
		c.add(where+"/variant", "is not the name of a variant")
	}
	if u.Weights == nil {
		return
	}
	names := sortedKeys(u.Weights)
	weights := make([]*int64, len(names))
	for i, name := range names {
		weights[i] = new(u.Weights[name])
		if !known[name] {
			c.add(where+"/weights/"+escape(name), "is not the name of a variant")
		}
	}
	c.weights(where+"/weights", weights, func(i int) string { return where + "/weights/" + escape(names[i]) })
}

// match checks one condition of a rule.
func (c *checker) match(where string, m *Match) {
	if c.oneOf(where+"/on", m.On, OnHeader, OnCookie, OnQuery, OnPath, OnMethod, OnClient) {
		c.source(where+"/name", m.On, m.Name)
	}
	var tests []string
	for _, t := range []struct {
		name  string
		there bool
	}{
		{"in", m.In != nil}, {"prefix", m.Prefix != nil}, {"regex", m.Regex != nil},
		{"cidr", m.CIDR != nil}, {"present", m.Present != nil},
	} {
		if t.there {
			tests = append(tests, t.name)
		}
	}
	switch len(tests) {
	case 0:
		c.add(where, "must have a test: in, prefix, regex, cidr or present")
	case 1:
	default:
		c.add(where, "must have one test, not "+strings.Join(tests, " and "))
	}
	c.in(where+"/in", m)
	c.others(where, m)
}

// source checks the name that a header, a cookie or a parameter needs and nothing
// else may have. kind is a Match.On or a Sticky.By.
func (c *checker) source(where, kind string, name *string) {
	switch kind {
	case OnHeader, OnCookie, OnQuery:
	default:
		if name != nil {
			c.add(where, "is not for "+kind)
		}
		return
	}
	switch {
	case name == nil:
		c.add(where, "is missing")
	case *name == "" || len(*name) > maxText:
		c.add(where, "must have 1 to 255 bytes")
	case kind == OnQuery:
	case !isToken(*name):
		c.add(where, "must be a "+kind+" name (RFC 9110 token)")
	case kind == OnHeader:
		c.header(where, *name)
	default:
		c.cookie(where, *name)
	}
}

// overrideCookie is the cookie of signed overrides, which the gateway takes away
// when they are not valid.
const overrideCookie = "route-override"

// cookie refuses the cookies of which routing cannot read what the client sent, or
// not in every request.
func (c *checker) cookie(where, name string) {
	switch name {
	case overrideCookie:
		c.add(where, "must not be a cookie that the gateway takes away")
	case KeyCookie:
		c.add(where, "must not be the gateway's own cookie, which is for sticky by gateway-cookie")
	}
}

// header refuses the headers of which routing cannot read what the client sent.
// The gateway removes them under other spellings too, so those are refused as well.
func (c *checker) header(where, name string) {
	switch plain := plainHeader(name); plain {
	case "cookie":
		c.add(where, "must not be Cookie: read the one cookie that you mean")
	case "host", "content-length", "connection", "keep-alive", "proxy-connection", "proxy-authenticate",
		"proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade":
		c.add(where, "must not be a header that belongs to the connection")
	case "forwarded", "x-real-ip", "route-override", "tmx-correlation-id", "proxy", "x-original-url", "x-rewrite-url":
		c.add(where, madeHeader)
	default:
		if strings.HasPrefix(plain, "x-forwarded-") || strings.HasPrefix(plain, "x-route-") {
			c.add(where, madeHeader)
		}
	}
}

const madeHeader = "must not be a header that the gateway makes or takes away"

// plainHeader returns the name that a careless reader takes name for, in lower
// case: X_Forwarded_For is read as X-Forwarded-For.
func plainHeader(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

// in checks a list of values.
func (c *checker) in(where string, m *Match) {
	if m.In == nil {
		return
	}
	if len(m.In) == 0 || len(m.In) > maxIn {
		c.add(where, "must hold 1 to 1000 strings")
	}
	for i, s := range m.In[:min(len(m.In), maxIn)] {
		if len(s) > maxValue {
			c.add(at(where, i, ""), "must have at most 1024 bytes")
		} else if detail := valueDetail(m.On, s); detail != "" {
			c.add(at(where, i, ""), detail)
		}
	}
}

// others checks the other tests of a match.
func (c *checker) others(where string, m *Match) {
	if m.Prefix != nil {
		if *m.Prefix == "" || len(*m.Prefix) > maxValue {
			c.add(where+"/prefix", "must have 1 to 1024 bytes")
		} else if detail := prefixDetail(m.On, *m.Prefix); detail != "" {
			c.add(where+"/prefix", detail)
		}
	}
	if m.Present != nil && !*m.Present && (m.On == OnPath || m.On == OnMethod) {
		c.add(where+"/present", "must not be false: every request has a "+m.On)
	}
	if m.Regex != nil {
		c.regex(where+"/regex", *m.Regex)
	}
	if m.On == OnClient && m.Regex != nil {
		c.add(where+"/regex", "is not for client: use cidr")
	}
	if m.CIDR == nil {
		return
	}
	if m.On != OnClient {
		c.add(where+"/cidr", "is for client only")
	}
	if _, err := compileCIDR(*m.CIDR); err != nil {
		c.add(where+"/cidr", err.Error())
	}
}

// regex checks a regular expression, alone and with those before it. Behind the one
// that is too much no further one is compiled.
func (c *checker) regex(where, s string) {
	if c.programs > maxPrograms {
		return
	}
	p, known := c.patterns[s]
	if !known {
		var err error
		if p, err = compileRegex(s); err != nil {
			c.add(where, err.Error())
			return
		}
		if c.patterns == nil {
			c.patterns = make(map[string]pattern)
		}
		c.patterns[s] = p
	}
	if c.programs += p.size; c.programs > maxPrograms {
		c.add(where, "must be a smaller regular expression: with those before it the record's are too large")
	}
}

// sticky checks where the key comes from and what goes with it.
func (c *checker) sticky(s *Sticky) {
	if s == nil {
		return
	}
	if c.oneOf("/sticky/by", s.By, ByHeader, ByCookie, ByQuery, ByClient, ByGatewayCookie) {
		c.source("/sticky/name", s.By, s.Name)
	}
	if s.Salt != nil && (len(*s.Salt) > maxText || strings.ContainsRune(*s.Salt, 0)) {
		c.add("/sticky/salt", "must have at most 255 bytes and no NUL")
	}
	if s.Missing != nil {
		switch {
		case !c.oneOf("/sticky/missing", *s.Missing, MissingDraw, MissingDefault):
		case s.By == ByGatewayCookie && *s.Missing == MissingDefault:
			c.add("/sticky/missing", "cannot be default by gateway-cookie: the gateway issues a key where one is missing")
		}
	}
	switch {
	case s.MaxAge == nil:
	case s.By != ByGatewayCookie:
		c.add("/sticky/maxAge", "is for gateway-cookie only")
	case *s.MaxAge < 1 || *s.MaxAge > maxKeyMaxAge:
		c.add("/sticky/maxAge", "must be 1 to 34560000 seconds (400 days)")
	}
}

// labelRules checks the rules that lead from a variant to its instances.
func (c *checker) labelRules(rules []LabelRule) {
	if len(rules) > MaxLabelRules {
		c.add("/labelRules", "must hold at most 16 label rules")
	}
	seen := map[string]bool{}
	for i, l := range rules[:min(len(rules), MaxLabelRules)] {
		where := at("/labelRules", i, "")
		c.source(where+"/header", OnHeader, &l.Header)
		c.text(where+"/label", l.Label)
		if !isASCII(l.Label) {
			c.add(where+"/label", "must be ASCII")
		}
		if id := strings.ToLower(l.Header) + "\x00" + l.Label; seen[id] {
			c.add(where, "has the header and label of an earlier label rule")
		} else {
			seen[id] = true
		}
		c.oneOf(where+"/mode", l.Mode, string(LabelExact), string(LabelSymmetric), string(LabelLenient))
		if l.Fallback != nil {
			c.oneOf(where+"/fallback", *l.Fallback, string(LabelNone), string(LabelUnlabelled), string(LabelAny))
		}
		if len(l.Guard) > maxGuards {
			c.add(where+"/guard", "must hold at most 64 CIDRs")
		}
		for j, s := range l.Guard[:min(len(l.Guard), maxGuards)] {
			if _, err := compileCIDR(s); err != nil {
				c.add(at(where+"/guard", j, ""), err.Error())
			}
		}
	}
}
