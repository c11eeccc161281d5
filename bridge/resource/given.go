package resource

// DateTime returns the time, with an offset from UTC, that a page gives in ISO 8601, or "". A date is
// its beginning in UTC, as for JavaScript. Clients refuse the list of all resources for another form.
func DateTime(s string) string {
	const form = "0000-00-00T00:00:00"
	if len(s) == 10 {
		s += "T00:00:00Z"
	}
	if len(s) <= len(form) || !fits(s, form) {
		return ""
	}
	number := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	month, leap := number(5), number(2)%4 == 0 && (number(2) > 0 || number(0)%4 == 0)
	days := 30 + (month+month>>3)&1
	if month == 2 {
		days = 28
		if leap {
			days = 29
		}
	}
	if month < 1 || month > 12 || number(8) < 1 || number(8) > days ||
		number(11) > 23 || number(14) > 59 || number(17) > 59 {
		return ""
	}
	end := len(form)
	if s[end] == '.' {
		for end++; end < len(s) && '0' <= s[end] && s[end] <= '9'; end++ {
		}
		if end == len(form)+1 {
			return ""
		}
	}
	switch zone := s[end:]; {
	case zone == "Z":
		return s
	case fits(zone, "+0000") || fits(zone, "-0000"):
		s = s[:end] + zone[:3] + ":" + zone[3:]
	case !fits(zone, "+00:00") && !fits(zone, "-00:00"):
		return ""
	}
	if number(end+1) > 23 || number(end+4) > 59 {
		return ""
	}
	return s
}

// fits reports whether s begins with form, in which 0 stands for a digit, and has as much after an
// offset or a date and time.
func fits(s, form string) bool {
	for i := range len(form) {
		if i >= len(s) || form[i] == '0' && (s[i] < '0' || s[i] > '9') || form[i] != '0' && form[i] != s[i] {
			return false
		}
	}
	return len(form) > 6 || len(s) == len(form)
}

// Reserved reports whether a page may not set a key of _meta. MCP, its extension for Views, and Pagewire
// own these. A label of the prefix decides, as MCP reserves them.
func Reserved(key string) bool {
	slash := indexByte(key, '/')
	if slash < 0 {
		return key == "ui" || key == "progressToken" || key == "__proto__"
	}
	prefix := "."
	for i := range slash {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		prefix += string(rune(c))
	}
	prefix += "."
	for i := range prefix {
		for _, label := range []string{".mcp.", ".modelcontextprotocol."} {
			if len(prefix) >= i+len(label) && prefix[i:i+len(label)] == label {
				return true
			}
		}
	}
	return prefix == ".ui." || prefix == ".pagewire."
}
