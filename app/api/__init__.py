"""The HTTP layer that all routes share: base route, middleware, guards, errors, paging, OpenAPI."""
