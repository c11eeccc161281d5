package resource

// DateTime returns the time of ISO 8601, with an offset from UTC, that a page gives, or "". A date is its beginning in
// UTC, as for JavaScript. Clients refuse the list of all resources for a time of another form.
func DateTime(s string) string {
	if len(s) == len("2026-11-27") {
		s += "T00:00Z"
	}
	const form = "0000-00-00T00:00"
	if len(s) <= len(form) {
		return ""
	}
	for i := range len(form) {
		if c := s[i]; form[i] == '0' && (c < '0' || c > '9') || form[i] != '0' && form[i] != c && (i != 10 || c != ' ') {
			return ""
		}
	}
	number := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	month, day := number(5), number(8)
	days := 31
	switch century, year := number(0), number(2); month {
	case 4, 6, 9, 11:
		days = 30
	case 2:
		days = 28
		if year%4 == 0 && (year != 0 || century%4 == 0) {
			days = 29
		}
	}
	if month < 1 || month > 12 || day < 1 || day > days || number(11) > 23 || number(14) > 59 {
		return ""
	}
	digits := func(i int) (end int) {
		for end = i; end < len(s) && '0' <= s[end] && s[end] <= '9'; end++ {
		}
		return end
	}
	time, rest := s[:10]+"T"+s[11:len(form)]+":00", len(form)
	if s[rest] == ':' {
		end := digits(rest + 1)
		if end != rest+3 || number(rest+1) > 59 {
			return ""
		}
		if end+1 < len(s) && s[end] == '.' && digits(end+1) > end+1 {
			end = digits(end + 1)
		}
		time, rest = time[:len(form)]+s[rest:end], end
	}
	zone := s[rest:]
	if zone == "Z" || zone == "z" {
		return time + "Z"
	}
	if len(zone) == 6 && zone[3] == ':' {
		zone = zone[:3] + zone[4:]
	}
	s = zone
	if len(zone) != 5 || zone[0] != '+' && zone[0] != '-' || digits(1) != 5 || number(1) > 23 || number(3) > 59 {
		return ""
	}
	return time + zone[:3] + ":" + zone[3:]
}

// Reserved reports whether a page may not set a key of _meta. MCP, its extension for Views, and Pagewire own these. A
// label of the prefix decides, as MCP reserves them.
func Reserved(key string) bool {
	slash := indexByte(key, '/')
	if slash < 0 {
		return key == "ui" || key == "progressToken" || key == "__proto__"
	}
	label := ""
	for i := 0; i <= slash; i++ {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != '.' && i < slash {
			label += string(rune(c))
			continue
		}
		if label == "mcp" || label == "modelcontextprotocol" || i == slash && i == len(label) && (label == "ui" ||
			label == "pagewire") {
			return true
		}
		label = ""
	}
	return false
}
