// Package build describes the program and its version of Pawl.
package build

import (
	"fmt"
	"runtime/debug"
)

// Module is Pawl's.
const Module = "github.com/pawlhq/pawl"

// Info describes a build. What is not known is "".
type Info struct {
	Program        string `json:"program,omitempty"` // where it is not Pawl's own
	ProgramVersion string `json:"program_version,omitempty"`
	Pawl           string `json:"pawl"`
	Commit         string `json:"commit,omitempty"`
}

// This is the running program.
func This() Info {
	info, _ := debug.ReadBuildInfo()
	return Of(info)
}

// Of reads a build's description, which may be nil.
func Of(info *debug.BuildInfo) Info {
	b := Info{Pawl: "unknown"}
	if info == nil {
		return b
	}
	if info.Main.Path != Module {
		b.Program, b.ProgramVersion = info.Main.Path, info.Main.Version
	}
	b.Pawl = pawlVersion(info)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (b Info) String() string {
	text := ""
	if b.Program != "" {
		text = fmt.Sprintf("%s %s, ", b.Program, b.ProgramVersion)
	}
	text += "pawl " + b.Pawl
	if b.Commit != "" {
		text += ", commit " + b.Commit
	}
	return text
}

func pawlVersion(info *debug.BuildInfo) string {
	if info.Main.Path == Module {
		return info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == Module {
			if d.Replace != nil {
				d = d.Replace
			}
			return d.Version
		}
	}
	return "unknown"
}
