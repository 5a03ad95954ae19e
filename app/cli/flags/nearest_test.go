package flags

import "testing"

func TestNearest(t *testing.T) {
	states := []string{"placed", "paid", "shipped"}
	for name, want := range map[string]string{
		"paidd": "did you mean paid?", "PLACED": "did you mean placed?", "hsipped": "did you mean shipped?",
		"elephant": "there are: paid, placed, shipped",
		"x":        "there are: paid, placed, shipped",
	} {
		if got := Nearest(name, states); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := Nearest("x", nil); got != "there is none" {
		t.Error(got)
	}
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"", "ab"}: 2, {"kitten", "sitting"}: 3, {"ab", "ba"}: 2} {
		if got := distance(pair[0], pair[1]); got != want {
			t.Errorf("%q: %d, want %d", pair, got, want)
		}
	}
}
