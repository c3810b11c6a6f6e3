"""The schedules that rota ships, as products and as examples."""
