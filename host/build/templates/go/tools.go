// Package export_example_{{snake}}_tools has the tools of `wit/plugin.wit`.
package export_example_{{snake}}_tools

import (
	"fmt"
	"math"
	"runtime"

	. "go.bytecodealliance.org/pkg/wit/types"
	. "wit_component/example_{{snake}}_tools"
)

func Echo(text string) string {
	return text
}

func Add(a, b int32) int32 {
	return a + b
}

func Greet(person Person) Result[string, string] {
	if person.Name == "" {
		return Err[string, string]("the name is empty")
	}
	if person.Age.IsSome() {
		return Ok[string, string](fmt.Sprintf("Hello, %s (%d)!", person.Name, person.Age.Some()))
	}
	return Ok[string, string](fmt.Sprintf("Hello, %s!", person.Name))
}

func Areas(shapes []Shape) []float64 {
	areas := make([]float64, len(shapes))
	for i, shape := range shapes {
		switch shape.Tag() {
		case ShapeCircle:
			areas[i] = math.Pi * shape.Circle() * shape.Circle()
		case ShapeSquare:
			areas[i] = shape.Square() * shape.Square()
		}
	}
	return areas
}

// Counter is the resource `counter`. The bindings use the first two fields.
type Counter struct {
	pinner runtime.Pinner
	handle int32
	value  uint32
}

func StartCounter(value uint32) *Counter {
	return &Counter{value: value}
}

func (c *Counter) Increment(by uint32) uint32 {
	c.value += by
	return c.value
}

// OnDrop is called after the host has dropped the counter.
func (c *Counter) OnDrop() {}
