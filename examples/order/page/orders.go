package page

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/examples/order"
)

// shop is the backend.
type shop struct {
	pawl      pawl
	ticketFor time.Duration
	log       *slog.Logger
}

// prices are in cents. The page's own prices are ignored.
var prices = map[string]int64{"lamp": 4900, "chair": 24900, "desk": 129900}

// wanted is what the page sends. The cart is its own name of the intention: as often as it is sent, there is one order.
type wanted struct {
	Cart     string `json:"cart"`
	Item     string `json:"item"`
	Quantity int64  `json:"quantity"`
}

// followed is what the page gets: the order, and a ticket for it.
type followed struct {
	Cart    string `json:"cart"`
	Number  string `json:"number"` // the business key
	Ticket  string `json:"ticket"`
	Seconds int64  `json:"seconds"` // for which the ticket is good
}

// placeOrder is POST /shop/orders.
func (s *shop) placeOrder(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, func(customer string, want wanted) (followed, error) {
		price, known := prices[want.Item]
		if !known || want.Quantity < 1 || want.Quantity > 9 {
			return followed{}, refuse(http.StatusBadRequest, "the item does not exist, or not in that quantity")
		}
		p := order.Place{Customer: customer, Cart: want.Cart, Total: price * want.Quantity, Currency: "EUR"}
		// The business key is the idempotency key too: that of a cart alone another customer could have.
		if err := s.pawl.place(r.Context(), order.Key(p), p); err != nil {
			return followed{}, err
		}
		return s.ticket(r.Context(), customer, want.Cart)
	})
}

// renewTicket is POST /shop/tickets: of an order of the customer who has the session, which need not be there.
func (s *shop) renewTicket(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, func(customer string, want wanted) (followed, error) {
		return s.ticket(r.Context(), customer, want.Cart)
	})
}

// ticket asks for one for an order, and for what its customer may do with it.
func (s *shop) ticket(ctx context.Context, customer, cart string) (followed, error) {
	number := order.Key(order.Place{Customer: customer, Cart: cart})
	text, err := s.pawl.ticket(ctx, number, customer, s.ticketFor)
	return followed{Cart: cart, Number: number, Ticket: text, Seconds: int64(s.ticketFor / time.Second)}, err
}

// maxBody bounds what the page sends, in bytes.
const maxBody = 4 << 10

var cartName = regexp.MustCompile(`^[0-9a-f]{12}$`)

// serve answers a request of a visitor with a session with the result of do.
func (s *shop) serve(w http.ResponseWriter, r *http.Request, do func(customer string, want wanted) (followed, error)) {
	customer, want := customerOf(r), wanted{}
	switch err := json.UnmarshalRead(http.MaxBytesReader(w, r.Body, maxBody), &want); {
	case customer == "":
		s.fail(w, r, refuse(http.StatusForbidden, "the cookie of this page is missing: load the page again"))
	case err != nil || !cartName.MatchString(want.Cart):
		s.fail(w, r, refuse(http.StatusBadRequest, "the request cannot be read"))
	default:
		answer, err := do(customer, want)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		send(w, http.StatusOK, answer)
	}
}

// fail answers what the customer may know; the rest is logged.
func (s *shop) fail(w http.ResponseWriter, r *http.Request, err error) {
	refusal, is := errors.AsType[*refusal](err)
	if !is {
		s.log.ErrorContext(r.Context(), "shop: an order cannot be served", "error", err)
		refusal = refuse(http.StatusBadGateway, "the shop has a problem: try again in a moment")
	}
	send(w, refusal.Status, refusal)
}

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, body) // who has left reads nothing
}
