package arch_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamesOfTestsAreShortAndNoTestSleeps(t *testing.T) {
	violations, err := CheckTests(os.DirFS(root))
	require.NoError(t, err)
	for _, v := range violations {
		t.Error(v)
	}
}

// The check has to be able to fail.
func TestLongNamesAndSleepsAreFound(t *testing.T) {
	long := strings.Repeat("x", MaxTestName+1)
	found, err := CheckTests(fstest.MapFS{
		"a_test.go": {Data: []byte("package a\n\nfunc Test" + long + "(t *testing.T) {\n\ttime.Sleep(1)\n\tt.Run(\"" + long +
			"\", nil)\n\tt.Run(\"short\", nil)\n\tawait.Pass(\"\", 1)\n}\n\nfunc " + long + "() {}\n\nfunc (t) Test" + long + "() {}\n")},
		"c_test.go": {Data: []byte("package a\n\nfunc few() bool { return testing.Short () }\n\n" +
			"func TestA(t *testing.T) { pgtest.Long (t) }\n")},
		"a.go":               {Data: []byte("package a\n\nfunc Test" + long + "() { time.Sleep(1) }\n")},
		"testdata/b_test.go": {Data: []byte("package b\n\nfunc f() { time.Sleep(1) }\n")},
	})
	require.NoError(t, err)
	var places []string
	for _, v := range found {
		place, _, _ := strings.Cut(v, ": ")
		places = append(places, place)
	}
	want := []string{"a_test.go:3:1", "a_test.go:4:2", "a_test.go:5:2", "c_test.go:3:1"}
	assert.Truef(t, slices.Equal(places, want), "found %q, want those at %q", found, want)
	_, err = CheckTests(fstest.MapFS{"a_test.go": {Data: []byte("package")}})
	assert.Error(t, err, "what cannot be read is passed over")
}
