"""One module a page; each has `layout(timelines, theme)` and `register(app, timelines)` for its callbacks."""
