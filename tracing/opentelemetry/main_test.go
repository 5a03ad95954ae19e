package opentelemetry_test

import (
	"testing"

	"github.com/pawlhq/pawl/internal/testkit/tables"
)

func TestMain(m *testing.M) { tables.Main(m) }
