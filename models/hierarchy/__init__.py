"""Learners that know the label tree: H-M3, H-SVM and H-RLS (Rousu, Saunders, Szedmak and Shawe-Taylor)."""
