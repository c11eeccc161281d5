package resource

import (
	"cmp"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestDecimalsAreComparedAsNumbers(t *testing.T) {
	// In ascending order; the texts of one row are the same number.
	rows := [][]string{
		{"-1e999999999999999999999", "-1E+99999999"},
		{"-9007199254740993"}, {"-9007199254740992", "-9.007199254740992e15"}, {"-10", "-1e1"},
		{"-9.5"},
		{"-0.25", "-25e-2"}, {"-1e-999999999999"},
		{"0", "-0", "0.000", "0e999999999999", "-0.0e-5"}, {"1e-400"},
		{"0.1", "1e-1", "0.10"}, {"0.11"}, {"1", "1.0", "10e-1", "0.001e3"}, {"9.99"},
		{"10", "1e1", "100E-1"},
		{"9007199254740992"}, {"9007199254740993", "9007199254740993.0"}, {"1e308"}, {"1e309"},
		{"1e16777215"},
	}
	for i, row := range rows {
		for _, a := range row {
			for j, other := range rows {
				for _, b := range other {
					if got, want := compare(a, b), cmp.Compare(i, j); cmp.Compare(got, 0) != want {
						t.Errorf("compare(%s, %s) = %d, want the sign of %d", a, b, got, want)
					}
				}
			}
		}
	}
}

// Floats compare the same where they are exact enough.
func TestDecimalsAgreeWithFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		f := (r.Float64() - 0.5) * 20
		return strconv.FormatFloat(f, "fgeE"[r.IntN(4)], r.IntN(3), 64)
	}
	for range 20_000 {
		a, b := text(), text()
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		if got, want := cmp.Compare(compare(a, b), 0), cmp.Compare(x, y); got != want {
			t.Fatalf("compare(%s, %s) = %d, want %d", a, b, got, want)
		}
	}
}

func TestNumbersThatJavaScriptHasNot(t *testing.T) {
	for text, want := range map[string]bool{
		"1.7976931348623157e308": false, "-1.7976931348623157e308": false, "1e308": false,
		"0e999999":  false,
		"1e-999999": false, "1e309": true, "-2e308": true, "1e99999999999999999999": true,
	} {
		if got := parseDecimal(text).huge(); got != want {
			t.Errorf("%s is huge: %t, want %t", text, got, want)
		}
	}
}
