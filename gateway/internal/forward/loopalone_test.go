package forward_test

import (
	"testing"

	"specialroutes.example/gateway/internal/forward/forwardtest"
)

// TestLoopAlone runs what the loop promises and net/http does not.
func TestLoopAlone(t *testing.T) { forwardtest.ExerciseLoop(t, start(true)) }
