package resource

// DateTime returns the time, with an offset from UTC, that a page gives in ISO 8601, or "". A date
// is its beginning in UTC, as for JavaScript. Clients refuse the list of all resources for another
// form.
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
		if i >= len(s) || form[i] == '0' && (s[i] < '0' || s[i] > '9') ||
			form[i] != '0' && form[i] != s[i] {
			return false
		}
	}
	return len(form) > 6 || len(s) == len(form)
}

// Reserved is what reserves a key of _meta, which a page may not set, or "": the key, or a label of
// its prefix. MCP, its extension for Views, and Pagewire own these.
func Reserved(key string) string {
	switch key {
	case "progressToken", "traceparent", "tracestate", "baggage", "__proto__":
		return key
	}
	from, end := 0, indexByte(key, '/')
	if end < 0 {
		end = len(key)
	}
	for i := 0; i <= end; i++ {
		if i < end && key[i] != '.' {
			continue
		}
		for n, label := range [...]string{"mcp", "modelcontextprotocol", "ui", "pagewire"} {
			if folds(key[from:i], label) && (n < 2 || from == 0 && i == end) {
				return label
			}
		}
		from = i + 1
	}
	return ""
}

// folds reports whether s is a word of lower-case letters, apart from its case.
func folds(s, word string) bool {
	if len(s) != len(word) {
		return false
	}
	for i := range len(s) {
		if s[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}
