//go:build race

package fines_test

const raceDetector = true
