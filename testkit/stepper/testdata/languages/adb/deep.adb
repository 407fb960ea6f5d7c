procedure Deep is
   type Op is access function (K : Integer) return Integer;
   type Row is array (Integer range <>) of Integer;
   Bad : exception;
   Sum : Integer := 0;
   function Twice (K : Integer) return Integer is (2 * K);
   function Call (F : Op; K : Integer) return Integer is (F (K) + F.all (K + 1));
   procedure Walk (N : Integer; F : not null access function (K : Integer) return Integer) is
      A : Row (0 .. N) := (others => N);
      function Mine (K : Integer) return Integer is
      begin
         if K mod 4 = 3 then raise Bad with "k" & Integer'Image (K); end if;
         return A (K mod (N + 1)) + F (K);
      end Mine;
   begin
      A (N) := F (N);
      if N > 0 then Walk (N - 1, Mine'Access); end if;
      declare
         B : constant Row := A & A;
      begin
         Sum := Sum + B'Length;
      end;
   exception
      when Bad => Sum := Sum + 1;
         if N > 5 then raise; end if;
   end Walk;
begin
   for I in 1 .. 5 loop Walk (I, Twice'Access); end loop;
   begin
      Walk (8, Twice'Access);
   exception
      when others => Sum := Sum + Call (Twice'Unrestricted_Access, Sum);
   end;
end Deep;
