package console_test

import (
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
