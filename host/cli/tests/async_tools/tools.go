package export_example_later_tools

import (
	"time"

	. "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/example_later_tools"
)

func DoubleLater(value uint32) uint32 {
	done := make(chan uint32)
	go func() {
		time.Sleep(5 * time.Millisecond)
		done <- value * 2
	}()
	return <-done
}

func Check(name string) Result[string, string] {
	if name == "" {
		return Err[string, string]("the name is empty")
	}
	return Ok[string, string](name + " is a name")
}

func Count(to uint32) *StreamReader[uint32] {
	writer, reader := example_later_tools.MakeStreamU32()
	go func() {
		defer writer.Drop()
		for i := uint32(1); i <= to; i++ {
			writer.WriteAll([]uint32{i})
		}
	}()
	return reader
}

func Speak(text string) *StreamReader[uint8] {
	writer, reader := example_later_tools.MakeStreamU8()
	go func() {
		defer writer.Drop()
		writer.WriteAll([]byte(text))
	}()
	return reader
}

func Promise(value string) *FutureReader[string] {
	writer, reader := example_later_tools.MakeFutureString()
	go writer.Write(value)
	return reader
}

func Sum(numbers *StreamReader[uint32]) uint32 {
	defer numbers.Drop()
	var sum uint32
	items := make([]uint32, 16)
	for !numbers.WriterDropped() {
		for _, item := range items[:numbers.Read(items)] {
			sum += item
		}
	}
	return sum
}

func Plain(value uint32) uint32 { return value + 1 }
