package project_test

import (
	"testing"

	"cosplay/internal/projecttest"
)

func TestMain(m *testing.M) { projecttest.Main(m) }
