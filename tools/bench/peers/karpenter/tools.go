//go:build tools

// Package tools names what build.sh compiles, so that go.mod keeps it.
package tools

import _ "sigs.k8s.io/karpenter/kwok"
