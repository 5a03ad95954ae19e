package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// The colours of a terminal (ECMA-48, "select graphic rendition").
const (
	bold  = "1"
	faint = "2"
	green = "32"
	blue  = "34"
)

// printer prints the story. After its first error it prints nothing.
type printer struct {
	out   io.Writer
	color bool
	err   error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

func (p *printer) paint(color, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (p *printer) title(format string, args ...any) {
	p.printf("\n%s\n", p.paint(bold, fmt.Sprintf(format, args...)))
}

// aside prints an event behind the scenes.
func (p *printer) aside(format string, args ...any) {
	p.printf("%s\n", p.paint(faint, "  "+fmt.Sprintf(format, args...)))
}

// tell is the narrator's voice.
func (p *printer) tell(number int, text string) {
	p.printf("\n%3d. %s\n", number, strings.ReplaceAll(text, "\n", "\n     "))
}

func (p *printer) sent(format string, args ...any) {
	p.printf("     %s %s\n", p.paint(blue, ">"), fmt.Sprintf(format, args...))
}

func (p *printer) received(format string, args ...any) {
	p.printf("     %s %s\n", p.paint(green, "<"), fmt.Sprintf(format, args...))
}

// held prints a successful check.
func (p *printer) held(format string, args ...any) {
	p.printf("     %s %s\n", p.paint(green, "="), fmt.Sprintf(format, args...))
}

// explore says what can be tried while the service is up. shop is the address of the
// shop's page, operators are the flags of an operator's command.
func (p *printer) explore(url, shop, bank, operators string) {
	p.printf(`
The service stays up until you press Ctrl-C. Its tables hold what you have just
seen. In a browser you can look at every order, and at why one stands still:

  %[1]s/console/

or order something, and follow it:

  %[2]s

In another terminal, try:

  curl %[1]s/v1/workflows/order/keys/c-1:k-9
  curl '%[1]s/v1/instances?workflow=fine&state=paid'
  curl '%[1]s/v1/workflows/order/diagram?format=mermaid'
  curl -N -H 'Accept: text/event-stream' '%[1]s/v1/events?after=now'

  curl -i %[1]s/v1/workflows/order/place \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: mine-1' \
    -d '{"customer":"c-2","cart":"k-1","total":4200,"currency":"EUR"}'
  curl -i %[1]s/v1/workflows/order/keys/c-2:k-1/pay \
    -H 'Content-Type: application/json' -H 'Idempotency-Key: mine-2' \
    -H 'Prefer: wait=10' -d '{"method":"card"}'
  curl %[3]s/ledger

What operators see:

  %[4]s ops keys %[5]s
  %[4]s ops sinks list %[5]s
  %[4]s ops inbox list %[5]s

`, url, shop, bank, os.Args[0], operators)
}
