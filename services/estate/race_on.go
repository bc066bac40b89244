//go:build race

package estate

// raceDetector reports whether this program was built with the race detector.
const raceDetector = true
