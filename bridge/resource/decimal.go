package resource

// Numbers are compared by their text. Package strconv would parse them into floats: 23 KB of
// TinyGo's wasm, half of it tables, and 2^53+1 would equal 2^53.

// A number is ±0.digits × 10^exponent. digits has no zero at either end, and is empty for 0.
type number struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal reads the text of a JSON number.
func parseDecimal(s string) (n number) {
	if s[0] == '-' {
		n.negative, s = true, s[1:]
	}
	digits, point, i := make([]byte, 0, len(s)), -1, 0
	for ; i < len(s) && s[i]|0x20 != 'e'; i++ {
		if s[i] == '.' {
			point = i
		} else {
			digits = append(digits, s[i])
		}
	}
	if point < 0 {
		point = i
	}
	first, last := 0, len(digits)
	for first < last && digits[first] == '0' {
		first++
	}
	for last > first && digits[last-1] == '0' {
		last--
	}
	if first == last {
		return number{} // -0 is 0
	}
	n.digits, n.exponent = string(digits[first:last]), point-first
	if i < len(s) {
		n.exponent += exponent(s[i+1:])
	}
	return n
}

// exponent reads the exponent of a number. It stops at 16 million, so that an int of 32 bits does
// not overflow: no text has enough digits to make up for such an exponent.
func exponent(s string) (n int) {
	negative := s[0] == '-'
	if negative || s[0] == '+' {
		s = s[1:]
	}
	for i := 0; i < len(s) && n < 1<<24; i++ {
		n = n*10 + int(s[i]-'0')
	}
	if negative {
		return -n
	}
	return n
}

// largest is JavaScript's largest number: JSON.parse makes infinity of a larger one.
var largest = number{digits: "17976931348623158", exponent: 309}

func (n number) huge() bool {
	n.negative = false
	return n.compare(largest) > 0
}

// Within reports whether number is from least to most. All three are texts of JSON numbers.
func Within(number, least, most string) bool {
	return compare(least, number) <= 0 && compare(number, most) <= 0
}

// compare is negative if a is less than b, positive if it is more, and 0 if they are equal.
func compare(a, b string) int { return parseDecimal(a).compare(parseDecimal(b)) }

func (n number) compare(o number) int {
	if n.sign() != o.sign() {
		return n.sign() - o.sign()
	}
	switch {
	case n.exponent != o.exponent:
		return n.sign() * (n.exponent - o.exponent)
	case n.digits < o.digits:
		return -n.sign()
	case n.digits > o.digits:
		return n.sign()
	}
	return 0
}

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

func decimal(n uint64) string {
	var text [20]byte
	i := len(text)
	for {
		i--
		text[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return string(text[i:])
		}
	}
}
