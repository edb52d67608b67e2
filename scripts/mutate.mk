mutate: ## turn each defence off in a copy of the tree and see its test fail
	@scripts/mutate

.PHONY: mutate
