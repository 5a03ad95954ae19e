package diagram

import "strings"

const (
	nameSize = 13.0 // of the text in a state, in pixels
	textSize = 12.0 // of the text at an arrow
	lineHigh = 15.0 // from one line at an arrow to the next
)

// textWidth estimates the width of a text in a wide sans-serif font; the reader's
// own font is seldom wider.
func textWidth(text string, size float64) float64 {
	em := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("il|.,:;'!", r):
			em += 0.30
		case strings.ContainsRune("fjrt[]()-/ ", r):
			em += 0.39
		case strings.ContainsRune("mw", r):
			em += 0.90
		default:
			em += 0.61
		}
	}
	return em * size
}

func widest(lines []string, size float64) float64 {
	w := 0.0
	for _, l := range lines {
		w = max(w, textWidth(l, size))
	}
	return w
}

func high(lines []string) float64 { return float64(len(lines)) * lineHigh }
