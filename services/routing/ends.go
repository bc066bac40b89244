package routing

import "time"

// Ended says whether the record's last day, by UTC, has passed at that moment. It
// changes no decision: it is there to warn people of records that were forgotten.
func (r *Record) Ended(now time.Time) bool {
	if r.Ends == nil {
		return false
	}
	last, err := time.Parse(time.DateOnly, *r.Ends)
	return err == nil && !now.Before(last.AddDate(0, 0, 1))
}
