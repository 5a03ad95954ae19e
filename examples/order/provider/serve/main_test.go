package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/examples/order/provider"
)

func TestServesUntilItsContextEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		defer writer.Close()
		ended <- run(ctx, []string{"-address", "127.0.0.1:0", "-lose", "1"}, writer)
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err, <-ended)
	}
	c := provider.Client{URL: strings.TrimSpace(strings.TrimPrefix(line, "serving "))}
	if _, err := c.Charge(t.Context(), "k", provider.Charge{Amount: 1, Currency: "EUR", Method: "card", Reference: "r"}); err == nil || provider.IsFinal(err) {
		t.Errorf("every answer is lost, but there was one: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestUnknownFlagIsAnError(t *testing.T) {
	if err := run(t.Context(), []string{"-explode"}, io.Discard); err == nil {
		t.Error("it serves all the same")
	}
}
