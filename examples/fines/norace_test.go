//go:build !race

package fines_test

const raceDetector = false
