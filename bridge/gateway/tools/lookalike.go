package tools

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Agents trust a tool by its name: list_page_resources is always ours. So no page's tool may have a
// name that a reader or a model could take for one of ours. Such a name differs by case, by
// separators, by similar signs of other scripts, by more text before or after it, or by one letter
// that is changed, missing or added.

// LookLikeOurs reports whether a name looks like one of ours.
func (n *Names) LookLikeOurs(name string) bool { return n.likeOurs(skeleton(name), 1) }

// TitleLooksLikeOurs is LookLikeOurs for a title, which programs show in place of the name. It may
// be of another script, as in Chinese: where more than half of a name would be signs of that, it
// looks like none of ours.
func (n *Names) TitleLooksLikeOurs(title string) bool { return n.likeOurs(skeleton(title), 2) }

func (n *Names) likeOurs(s []rune, share int) bool {
	if begins(s, skeleton(us)) {
		return true
	}
	for _, own := range n.ours {
		if want := skeleton(own); holds(s, want, len(want)/share) {
			return true
		}
	}
	return false
}

// begins reports whether s begins with want, of which at most a quarter is signs of other scripts.
func begins(s, want []rune) bool {
	others := 0
	for i, w := range want {
		switch {
		case i < len(s) && s[i] == anySign:
			others++
		case i >= len(s) || s[i] != w:
			return false
		}
	}
	return 4*others <= len(want)
}

// latin replaces the Cyrillic letters that look like Latin ones.
var latin = strings.NewReplacer("а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "у", "y", "х", "x",
	"і", "i", "ѕ", "s", "ј", "j", "ԁ", "d", "һ", "h", "ԛ", "q", "ԝ", "w")

// anySign stands for a sign of another script, and equals any letter: its look depends on the
// reader's font.
const anySign = '?'

// skeleton reduces a name to the letters that a reader sees at a glance.
func skeleton(name string) []rune {
	var s []rune
	// NFKD: also ｗｉｄｅ, 𝗯𝗼𝗹𝗱 and áccents.
	for _, r := range latin.Replace(strings.ToLower(norm.NFKD.String(name))) {
		switch {
		case r >= 0x1160 && r <= 0x11ff: // of Hangul: the rest of a syllable
		case r == '0':
			s = append(s, 'o')
		case r == '1', r == 'i', r == '|', r == '!':
			s = append(s, 'l')
		case r == '3':
			s = append(s, 'e')
		case r == '4', r == '@':
			s = append(s, 'a')
		case r == '5', r == '$':
			s = append(s, 's')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			s = append(s, r)
		case r > unicode.MaxASCII && unicode.IsPrint(r) &&
			!unicode.In(r, unicode.Mn, unicode.P, unicode.Zs):
			s = append(s, anySign)
		}
	}
	return s
}

// holds reports whether some part of s differs from want by at most one sign, and has at most so
// many signs of other scripts: Sellers' algorithm, which is Levenshtein's distance to the best
// part. Names have about 20 signs; s is cut after 256.
func holds(s, want []rune, others int) bool {
	const longest, never = 256, 257
	s = s[:min(len(s), longest)]
	// above[i][d] is the least number of signs of other scripts with which a part that ends before
	// the current sign has want[:i] with d differences.
	above, now := make([][2]int, len(want)+1), make([][2]int, len(want)+1)
	for i := range above {
		above[i] = [2]int{never, never}
	}
	above[0], above[1] = [2]int{}, [2]int{never, 0}
	for _, r := range s {
		for i, w := range want {
			same := [2]int{never, never}
			switch r {
			case w:
				same = above[i]
			case anySign:
				same = [2]int{above[i][0] + 1, above[i][1] + 1}
			}
			now[i+1] = [2]int{same[0], min(same[1], above[i][0], above[i+1][0], now[i][0])}
		}
		if last := now[len(want)]; min(last[0], last[1]) <= others {
			return true
		}
		above, now = now, above
	}
	return false
}
